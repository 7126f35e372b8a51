#include "launcher/job/state/failed_calls.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/watch/words.h"
#include "runtime/dtrun.h"

/* Not noted are aborts, which the program asked for, and lost peers, which dtrun reports as deaths.
 */
void dt_failed_calls_note(struct dt_failed_calls *f, const struct dt_msg_failed *m)
{
    struct dt_failed_call *failed = m->comm == 0 ? &f->world : &f->comm;

    if (m->code == DT_ERR_ABORTED || m->code == DT_ERR_PEER || (m->comm == 0 && failed->text))
        return;
    free(failed->text);
    *failed = (struct dt_failed_call){ dt_xstrdup(m->text), m->comm, m->rank };
}

/* A program must not ignore a failure of DT_WORLD, on which no call works any more. It may go on
 * without another communicator, once it has freed or aborted it. */
char *dt_failed_calls_judge(const struct dt_failed_calls *f)
{
    const struct dt_failed_call *failed = f->world.text ? &f->world : &f->comm;
    struct dt_strbuf text = { 0 };

    if (!failed->text || (failed == &f->comm && !f->ignored))
        return NULL;
    dt_strbuf_puts(&text, "all ranks exited with 0, although a call on ");
    dt_words_comm(&text, failed->comm);
    dt_strbuf_printf(&text, " had failed for good (rank %u)%s: %s", failed->rank,
                     failed->comm ? " and no rank has freed it" : "", failed->text);
    return dt_strbuf_take(&text);
}

void dt_failed_calls_forget(struct dt_failed_calls *f)
{
    free(f->world.text);
    free(f->comm.text);
    *f = (struct dt_failed_calls){ 0 };
}
