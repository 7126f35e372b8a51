#include "cmd/options.h"

int main(void)
{
    return 0;
}
