/* The reason why the ranks of a generation could not be started. */
#ifndef DT_JOB_STATE_REFUSAL_H
#define DT_JOB_STATE_REFUSAL_H

struct dt_refusal { /* zero-initialised */
    char *text;
    char *hosts; /* the hosts that gave this reason, as in "host1, host2"; NULL: no host did */
    int exit_code;
};

/* Only the first refusal counts. A later one adds its host if the text is the same; otherwise it is
 * printed at once. Takes over text. host is NULL if no host gave the reason. */
void dt_refusal_add(struct dt_refusal *r, char *text, const char *host, int exit_code);
void dt_refusal_say(const struct dt_refusal *r);
void dt_refusal_forget(struct dt_refusal *r); /* makes it zero-initialised again */

#endif
