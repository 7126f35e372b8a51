# Reads dtrun.h. Prints CALL(function, needs, arguments) for each function that returns a result and
# whose parameters misuse.c has values for, known by their names.
BEGIN {
    value["comm"] = "COMM"
    value["const void in"] = "IN"
    value["const void buf"] = "IN"
    value["void out"] = "OUT"
    value["void buf"] = "OUT"
    value["count"] = "SIZE"
    value["counts"] = value["send_counts"] = value["recv_counts"] = "COUNTS"
    value["dtype"] = "TYPE"
    value["op"] = "OP"
    value["root"] = value["peer"] = "ROOT"
    value["options"] = "0"
    value["request"] = "REQUEST"
}

# The key of a parameter: its name, with the type if that tells input from output.
function key(parameter)
{
    gsub(/\*/, " ", parameter)
    gsub(/^ +| +$/, "", parameter)
    gsub(/ +/, " ", parameter)
    if (parameter !~ /(^| )void /)
        sub(/.* /, "", parameter)
    return parameter
}

function argument(need)
{
    return need == "0" ? "NULL" : "g->" tolower(need)
}

{ text = text " " $0 }

/;$/ {
    if (match(text, /DT_API dt_result_t dt_[a-z_]+\(dt_comm_t \*comm[,)].*/)) {
        declaration = substr(text, RSTART + length("DT_API dt_result_t "))
        name = declaration
        sub(/\(.*/, "", name)
        gsub(/.*\(|\).*/, "", declaration)
        n = split(declaration, parameters, ",")
        needs = arguments = ""
        for (i = 1; i <= n && key(parameters[i]) in value; i++) {
            need = value[key(parameters[i])]
            needs = needs (i > 1 ? " | " : "") need
            arguments = arguments ", " argument(need)
        }
        if (i > n)
            printf "CALL(%s, %s%s)\n", name, needs, arguments
    }
    text = ""
}
