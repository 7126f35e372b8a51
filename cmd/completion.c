#include "cmd/completion.h"

#include <stdio.h>
#include <string.h>

#define RANK_WORDS  "all none"
#define COUNT_WORDS "gpu cpu auto"
#define FAULT_WORDS "kill:rank= stop:rank= exit:rank= host:node= host:rank= agent:node= agent:rank="

/* The part of the script that does not depend on the table. $cur is the word to be completed, as
 * far as it is typed. */
static const char bash_rest[] =
    "# The hosts that the user's SSH knows, and those of a hostfile.\n"
    "_dtrun_hosts() { # FILE\n"
    "    sed -nE 's/^[[:blank:]]*[Hh]ost[[:blank:]=]+//p' ~/.ssh/config |\n"
    "        tr -s '[:blank:]' '\\n' | grep -v '[*?!]'\n"
    "    sed -nE 's/^([[:alnum:]_.-]+).*/\\1/p' ~/.ssh/known_hosts\n"
    "    [[ -z $1 ]] || sed -nE 's/^[[:blank:]]*([[:alnum:]_.@-]+).*/\\1/p' \"$1\"\n"
    "} 2>/dev/null\n"
    "\n"
    "# Offers the words that begin with $cur. Readline replaces what follows its last word break.\n"
    "_dtrun_offer() { # WORD...\n"
    "    local word cut= breaks=${COMP_WORDBREAKS//[^:=]/}\n"
    "\n"
    "    [[ -z $breaks ]] || cut=${cur%\"${cur##*[$breaks]}\"}\n"
    "    for word; do\n"
    "        [[ $word != \"$cur\"* ]] || COMPREPLY+=(\"${word#\"$cut\"}\")\n"
    "    done\n"
    "}\n"
    "\n"
    "# Offers the options that begin with $cur.\n"
    "_dtrun_option() {\n"
    "    local name names=($_dtrun_names)\n"
    "\n"
    "    for name in \"${names[@]}\"; do\n"
    "        case $cur in\n"
    "        --*) [[ $name == ? ]] || _dtrun_offer \"--$name\" ;;\n"
    "        -?*) _dtrun_offer \"-$name\" ;;\n"
    "        *) [[ $name == ?? || $name == ? ]] && _dtrun_offer \"-$name\" ||\n"
    "            _dtrun_offer \"--$name\" ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "\n"
    "# Offers the values of an option of this $kind. BEFORE is what stands before the value in "
    "$cur.\n"
    "_dtrun_value() { # BEFORE\n"
    "    local before=$1 value=${cur#\"$1\"} found=()\n"
    "\n"
    "    case $kind in\n"
    "    FILE | PATH) mapfile -t found < <(compgen -f -- \"$value\"); compopt -o filenames ;;\n"
    "    DIR) mapfile -t found < <(compgen -d -- \"$value\"); compopt -o filenames ;;\n"
    "    NAME*) mapfile -t found < <(compgen -e -- \"$value\"); compopt -o nospace ;;\n"
    "    HOSTS)\n"
    "        before+=${value%\"${value##*,}\"}\n"
    "        mapfile -t found < <(_dtrun_hosts \"$hostfile\" | sort -u)\n"
    "        compopt -o nospace ;;\n"
    "    NETWORKS)\n"
    "        before+=${value%\"${value##*,}\"}\n"
    "        mapfile -t found < <(ls /sys/class/net)\n"
    "        compopt -o nospace ;;\n"
    "    USER) mapfile -t found < <(compgen -u -- \"$value\") ;;\n"
    "    RANK) found=(" RANK_WORDS ") ;;\n"
    "    COUNT) found=(" COUNT_WORDS ") ;;\n"
    "    FAULT)\n"
    "        found=(" FAULT_WORDS ")\n"
    "        compopt -o nospace ;;\n"
    "    *\"|\"*) IFS='|' read -ra found <<<\"$kind\" ;;\n"
    "    esac 2>/dev/null\n"
    "    _dtrun_offer \"${found[@]/#/$before}\"\n"
    "}\n"
    "\n"
    "_dtrun_program() {\n"
    "    compopt -o filenames\n"
    "    mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"; compgen -d -- \"$cur\")\n"
    "} 2>/dev/null\n"
    "\n"
    "_dtrun() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words cur kind name value hostfile i\n"
    "\n"
    "    COMPREPLY=()\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line != *[[:blank:]] ]] || words+=('')\n"
    "    cur=${words[-1]}\n"
    "    for ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
    "        if [[ ${words[i]} != -?* || ( ${words[i]} == -- && i -lt ${#words[@]}-2 ) ]]; then\n"
    "            compopt -o default 2>/dev/null # the program's own arguments: files\n"
    "            return\n"
    "        elif [[ ${words[i]} == -- ]]; then\n"
    "            _dtrun_program\n"
    "            return\n"
    "        fi\n"
    "        name=${words[i]#-} name=${name#-} value=\n"
    "        [[ $name != *=* ]] || value=${name#*=}\n"
    "        _dtrun_kind \"${name%%=*}\" || return\n"
    "        if [[ $kind && $name != *=* ]]; then\n"
    "            if ((++i == ${#words[@]} - 1)); then\n"
    "                _dtrun_value ''\n"
    "                return\n"
    "            fi\n"
    "            value=${words[i]}\n"
    "        fi\n"
    "        [[ ${name%%=*} != @(hostfile|machinefile) ]] || hostfile=$value\n"
    "    done\n"
    "    name=${cur#-} name=${name#-}\n"
    "    case $cur in\n"
    "    -*=*) _dtrun_kind \"${name%%=*}\" && _dtrun_value \"${cur%%=*}=\" ;;\n"
    "    -*) _dtrun_option ;;\n"
    "    *) _dtrun_program ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "complete -F _dtrun dtrun\n";

static void print_joined(const struct dt_option_text *o, const char *between)
{
    for (size_t k = 0; k < o->nnames; k++)
        printf("%s%s", k ? between : "", o->names[k]);
}

static void print_bash(void)
{
    struct dt_option_text o;

    printf("# bash completion for dtrun(1), made from its table of options.\n\n_dtrun_names='");
    for (size_t i = 0; dt_options_text(i, &o); i++) {
        print_joined(&o, " ");
        putchar('\n');
    }
    printf("'\n\n# What the value of an option is, in $kind; empty for none.\n"
           "_dtrun_kind() { # NAME\n    case $1 in\n");
    for (size_t i = 0; dt_options_text(i, &o); i++) {
        printf("    ");
        print_joined(&o, " | ");
        printf(") kind='%s' ;;\n", o.value ? o.value : "");
    }
    printf("    *) return 1 ;;\n    esac\n}\n\n%s", bash_rest);
}

/* Prints "a|b" as "a b". */
static void print_as_words(const char *alternatives)
{
    for (; *alternatives; alternatives++)
        putchar(*alternatives == '|' ? ' ' : *alternatives);
}

/* Prints text for inside single quotes, and escapes what zsh's _arguments would interpret. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        if (*text == '\'')
            printf("'\\'");
        putchar(*text);
    }
}

static void print_zsh_value(const char *value)
{
    static const struct {
        const char *value;
        const char *action;
    } actions[] = {
        { "FILE", "_files" },
        { "PATH", "_files" },
        { "DIR", "_files -/" },
        { "HOSTS", "_sequence _hosts" },
        { "NETWORKS", "_sequence _net_interfaces" },
        { "NAME", "_parameters -g \"*export*\"" },
        { "NAME[=VALUE]", "_parameters -g \"*export*\"" },
        { "USER", "_users" },
        { "RANK", "(" RANK_WORDS ")" },
        { "COUNT", "(" COUNT_WORDS ")" },
        { "FAULT", "(" FAULT_WORDS ")" },
    };

    putchar(':');
    print_zsh_text(value);
    putchar(':');
    if (strchr(value, '|')) {
        putchar('(');
        print_as_words(value);
        putchar(')');
    }
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(actions[i].value, value) == 0)
            print_zsh_text(actions[i].action);
    }
}

/* In the line, '*' offers the option again after it was given; "=" says that its value may follow
 * an equals sign. */
static void print_zsh_option(const struct dt_option_text *o, const char *dashes, const char *name)
{
    printf("    '*%s%s%s[", dashes, name, o->value ? "=" : "");
    print_zsh_text(o->help);
    putchar(']');
    if (o->value)
        print_zsh_value(o->value);
    puts("'");
}

static void print_zsh(void)
{
    struct dt_option_text o;

    puts("#compdef dtrun\n"
         "# zsh completion for dtrun(1), made from its table of options.\n\n"
         "local -a options=(");
    for (size_t i = 0; dt_options_text(i, &o); i++) {
        for (size_t k = 0; k < o.nnames; k++) {
            if (strlen(o.names[k]) > 1)
                print_zsh_option(&o, "--", o.names[k]);
            print_zsh_option(&o, "-", o.names[k]);
        }
    }
    puts(")\n\n"
         "_arguments -S : $options '(-)1:program:_command_names -e' '*:: :_normal'");
}

static void print_fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (strchr("'\\", *text))
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

/* Prints what fish offers for a value: these words, or the output of the command in parentheses. */
static void print_fish_value(const char *value)
{
    static const struct {
        const char *value;
        const char *offer;
    } offers[] = {
        { "FILE", NULL },
        { "PATH", NULL },
        { "DIR", "(__fish_complete_directories)" },
        { "HOSTS", "(__fish_print_hostnames)" },
        { "USER", "(__fish_complete_users)" },
        { "NAME", "(set --names)" },
        { "NAME[=VALUE]", "(set --names)" },
        { "NETWORKS", "(__fish_print_interfaces)" },
        { "RANK", RANK_WORDS },
        { "COUNT", COUNT_WORDS },
        { "FAULT", FAULT_WORDS },
    };

    printf(" -r");
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
        if (strcmp(offers[i].value, value) != 0)
            continue;
        if (offers[i].offer)
            printf(" -f -a '%s'", offers[i].offer);
        return;
    }
    printf(" -f");
    if (strchr(value, '|')) {
        printf(" -a '");
        print_as_words(value);
        putchar('\'');
    }
}

/* The part of the script that does not depend on the table. */
static const char fish_rest[] =
    "# The words from the program on, the one at the cursor included.\n"
    "function __dtrun_tail\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -e words[1]\n"
    "    while set -q words[1]\n"
    "        set -l word $words[1]\n"
    "        switch $word\n"
    "            case '-*=*'\n"
    "            case --\n"
    "                set -q words[2]; and set -e words[1]\n"
    "                break\n"
    "            case '-*'\n"
    "                if contains -- (string replace -r '^--?' '' -- $word) $__dtrun_valued\n"
    "                    set -e words[1]\n"
    "                end\n"
    "            case '*'\n"
    "                break\n"
    "        end\n"
    "        set -e words[1]\n"
    "    end\n"
    "    string escape -- $words\n"
    "end\n"
    "\n"
    "function __dtrun_program\n"
    "    set -l tail (__dtrun_tail)\n"
    "    set -q tail[1]; and complete -C (string join ' ' -- $tail)\n"
    "end\n"
    "\n"
    "function __dtrun_before_program\n"
    "    test (count (__dtrun_tail)) -eq 0\n"
    "end\n"
    "\n"
    "complete -c dtrun -f -a '(__dtrun_program)'\n";

/* A long name takes one dash or two. */
static void print_fish_option(const struct dt_option_text *o)
{
    printf("complete -c dtrun -n __dtrun_before_program");
    for (size_t k = 0; k < o->nnames; k++) {
        if (strlen(o->names[k]) == 1)
            printf(" -s %s", o->names[k]);
        else
            printf(" -l %s -o %s", o->names[k], o->names[k]);
    }
    if (o->value)
        print_fish_value(o->value);
    printf(" -d ");
    print_fish_text(o->help);
    putchar('\n');
}

static void print_fish(void)
{
    struct dt_option_text o;

    printf("# fish completion for dtrun(1), made from its table of options.\n\n"
           "set -g __dtrun_valued");
    for (size_t i = 0; dt_options_text(i, &o); i++)
        for (size_t k = 0; o.value && k < o.nnames; k++)
            printf(" %s", o.names[k]);
    printf("\n\n%s\n", fish_rest);
    for (size_t i = 0; dt_options_text(i, &o); i++)
        print_fish_option(&o);
}

void dt_completion_print(enum dt_shell shell)
{
    if (shell == DT_SHELL_BASH)
        print_bash();
    else if (shell == DT_SHELL_ZSH)
        print_zsh();
    else
        print_fish();
}
