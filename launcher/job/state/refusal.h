/* Why the ranks of a generation could not be started. */
#ifndef DT_JOB_STATE_REFUSAL_H
#define DT_JOB_STATE_REFUSAL_H

struct dt_refusal { /* zero-initialised; one text for all hosts that say the same */
    char *text;
    char *hosts; /* "host1, host2"; NULL: it is not that of a host */
    int exit_code;
};

/* The first refusal counts; a different one of another host is only printed. Takes text. host: NULL
 * if it is no host's. */
void dt_refusal_add(struct dt_refusal *r, char *text, const char *host, int exit_code);
void dt_refusal_say(const struct dt_refusal *r);
void dt_refusal_forget(struct dt_refusal *r); /* as zero-initialised */

#endif
