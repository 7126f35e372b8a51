#include "launcher/place/role.h"

#include <stdio.h>

struct dt_role dt_role_of(uint32_t number, uint32_t np)
{
    if (number < np)
        return (struct dt_role){ DT_ROLE_RANK, number };
    if (number == np)
        return (struct dt_role){ DT_ROLE_SCHEDULER, 0 };
    return (struct dt_role){ DT_ROLE_SERVER, number - np - 1 };
}

const char *dt_role_name(char name[DT_ROLE_NAME_MAX], uint32_t number, uint32_t np)
{
    struct dt_role role = dt_role_of(number, np);

    if (role.kind == DT_ROLE_SCHEDULER)
        snprintf(name, DT_ROLE_NAME_MAX, "scheduler");
    else
        snprintf(name, DT_ROLE_NAME_MAX, "%s %u", role.kind == DT_ROLE_RANK ? "rank" : "server",
                 role.index);
    return name;
}
