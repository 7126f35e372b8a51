/* Words for messages to the user: numbers with units, ranks, deaths. Pure. */
#ifndef DT_WATCH_WORDS_H
#define DT_WATCH_WORDS_H

#include <stdint.h>

#include "launcher/base/strbuf.h"
#include "launcher/place/iface.h"
#include "launcher/watch/cause.h"
#include "runtime/wire/msg.h"

void dt_words_duration(struct dt_strbuf *out, double seconds); /* "0.21 s", "4 min 12 s" */
void dt_words_count(struct dt_strbuf *out, uint64_t n, const char *what); /* "1 step", "3 steps" */
void dt_words_bytes(struct dt_strbuf *out, double bytes);                 /* "40 GiB", "1.2 TiB" */
void dt_words_bits(struct dt_strbuf *out, double bits_per_second);        /* "9.8 Gbit/s" */
/* Writes an ascending list as "4-7" or "0,4,8". A long list has "..." in the middle. */
void dt_words_list(struct dt_strbuf *out, const struct dt_u32s *list);
void dt_words_ranks(struct dt_strbuf *out, const struct dt_u32s *ranks); /* "rank 4", "ranks 4-7" */
void dt_words_comm(struct dt_strbuf *out, uint64_t comm); /* "DT_WORLD", "communicator 3.2" */

/* Writes "rank 5 (host2, pid 4711) was killed by signal 9 (SIGKILL) at step 153". Not for hosts.
 */
void dt_words_death(struct dt_strbuf *out, const struct dt_death *death, uint32_t np,
                    const char *host, uint32_t pid);

/* Writes "at 10.0.0.7:40123 (eth0): ..." with the reason why that does not work. */
void dt_words_reached(struct dt_strbuf *out, const struct dt_msg_reached *r,
                      const struct dt_candidate *at, uint16_t port);
/* Writes why ranks could not be started: "./trian: No such file or directory". elsewhere: on
 * another machine, which may lack files that exist here. */
void dt_words_spawn(struct dt_strbuf *out, const struct dt_msg_spawn_failed *why, bool elsewhere);

#endif
