/* SPDX-License-Identifier: Apache-2.0 */
/* `rorqual settings`: lists the settings, and shows the effect of a configuration. From the table
 * settings.def, like docs/settings.md (tools/settings). */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/site.h"

#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: rorqual settings [--changed] [--json] [--config FILE] [-D name=value]... [PATTERN]\n\n"
    "Prints every setting: unit, default, range, meaning, HBase's counterpart.\n\n"
    "  --changed         only settings whose value, from --config and -D, differs from the "
    "default\n"
    "  --config FILE     an hbase-site.xml, or lines of name=value; its values are printed too\n"
    "  -D name=value     one setting\n"
    "  --json            a JSON object on each line\n"
    "PATTERN: a part of the name, or a pattern with * and ? for the whole name.\n\n"
    "examples:\n"
    "  rorqual settings compaction\n"
    "  rorqual settings --changed --config hbase-site.xml\n"
    "exit codes: 0 printed; 1 no setting matches; 2 wrong arguments or a wrong configuration\n";

typedef struct settings_run {
    bool json, changed;
    const char *pattern;
    rq_site site;
} settings_run;

static bool matches(const char *pattern, const char *name)
{
    if (name == NULL) return false;
    if (strpbrk(pattern, "*?[") != NULL) return fnmatch(pattern, name, FNM_CASEFOLD) == 0;
    return strcasestr(name, pattern) != NULL;
}

static bool is_wanted(const settings_run *run, const rq_setting_info *i, const char *value)
{
    if (run->changed && strcmp(value, i->fallback) == 0) return false;
    return run->pattern == NULL || matches(run->pattern, i->name) ||
           matches(run->pattern, i->older) || matches(run->pattern, i->hbase);
}

static const char *kind_name(rq_setting_kind kind)
{
    static const char *const names[] = {"integer", "integer", "bytes", "milliseconds",
                                        "number",  "boolean", "text"};
    return names[kind];
}

static bool is_own(const rq_setting_info *i)
{
    return strncmp(i->name, "rorqual.", 8) == 0;
}

static void json_text(const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') rq__print_json_text(",", name, rq_slice_cstr(value));
}

static void print_json(const rq_setting_info *i, const char *value)
{
    char range[RQ_SETTING_RANGE_MAX];
    rq__print_json_text("{", "name", rq_slice_cstr(i->name));
    json_text("type", kind_name(i->kind));
    json_text("unit", rq_setting_unit(i));
    rq__print_json_text(",", "default", rq_slice_cstr(i->fallback));
    if (strcmp(value, i->fallback) != 0) json_text("value", value);
    json_text("range", rq_setting_range(i, range));
    json_text("meaning", i->text);
    json_text("hbase", is_own(i) ? i->hbase : i->name);
    json_text("hbaseDefault", i->hbase_default);
    json_text("older", i->older);
    printf(",\"reloads\":%s}\n", i->reloads ? "true" : "false");
}

/* "134217728 (128m)", "the empty text" */
static void print_value(const rq_setting_info *i, const char *value)
{
    char bytes[RQ_SETTING_RANGE_MAX];
    char *end;
    if (value[0] == '\0') {
        printf("(empty)");
        return;
    }
    printf("%s", value);
    if (i->kind != RQ_SETTING_BYTES) return;
    long long v = strtoll(value, &end, 10);
    rq_setting_bytes_text(v, bytes);
    if (*end == '\0' && bytes[strlen(bytes) - 1] > '9') printf(" (%s)", bytes);
}

static void print_hbase(const rq_setting_info *i)
{
    if (is_own(i)) {
        if (i->hbase != NULL) printf("    in HBase: %s\n", i->hbase);
        return;
    }
    printf("    in HBase: the same");
    if (i->hbase_default != NULL) printf(", default %s", i->hbase_default);
    if (i->older != NULL) printf("; older name %s", i->older);
    printf("\n");
}

static void print_text(const rq_setting_info *i, const char *value)
{
    char range[RQ_SETTING_RANGE_MAX];
    const char *unit = i->unit == NULL ? "" : i->unit; /* units of these kinds are in the name */
    printf("%s\n    %s\n    %s%s%s%s, default ", i->name, i->text, kind_name(i->kind),
           unit[0] == '\0' ? "" : " (", unit, unit[0] == '\0' ? "" : ")");
    print_value(i, i->fallback);
    if (strcmp(value, i->fallback) != 0) {
        printf(", now ");
        print_value(i, value);
    }
    if (rq_setting_range(i, range)[0] != '\0') printf(", allowed %s", range);
    printf("%s\n", i->reloads ? "; reloadable" : "");
    print_hbase(i);
}

static int print_settings(const settings_run *run)
{
    rq_config *c;
    rq_error why = {.code = RQ_OK};
    size_t count = 0;
    if (rq__site_read(&run->site, &c, &why) != RQ_OK) {
        fprintf(stderr, "rorqual settings: %s\n", why.message);
        return 2;
    }
    for (int s = 0; s < RQ_SETTING_COUNT; s++) {
        const rq_setting_info *i = rq_setting_get((rq_setting)s);
        const char *value = rq_config_text(c, (rq_setting)s);
        if (!is_wanted(run, i, value)) continue;
        count++;
        if (run->json)
            print_json(i, value);
        else
            print_text(i, value);
    }
    rq_config_free(c);
    if (count > 0 || run->changed) return 0;
    fprintf(stderr, "rorqual settings: no setting matches '%s'\n",
            run->pattern == NULL ? "" : run->pattern);
    return 1;
}

/* Exit code; -1: go on. */
static int parse(settings_run *run, int argc, char **argv)
{
    static const struct option options[] = {{"changed", no_argument, NULL, 'c'},
                                            {"config", required_argument, NULL, 'f'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, ":D:h", options, NULL)) != -1) {
        rq_site_kind kind = option == 'f' ? RQ_SITE_FILE : RQ_SITE_PAIR;
        if (option == '?' || option == ':') return rq__refuse_option("settings", option, argv);
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        run->changed |= option == 'c';
        run->json |= option == 'j';
        if ((option == 'f' || option == 'D') &&
            !rq__site_add(&run->site, kind, (rq_setting)0, optarg)) {
            fprintf(stderr, "rorqual settings: out of memory\n");
            return 1;
        }
    }
    if (argc - optind > 1)
        return rq__refuse("settings", "expected one pattern, unknown argument '%s'",
                          argv[optind + 1]);
    run->pattern = optind < argc ? argv[optind] : NULL;
    return -1;
}

int rq__cmd_settings(int argc, char **argv)
{
    settings_run run = {0};
    int code = parse(&run, argc, argv);
    if (code < 0) code = print_settings(&run);
    rq__site_clear(&run.site);
    return code;
}
