#!/usr/bin/env bats
# Horovod programs look for a rendezvous over HTTP. tests/rank/horovod sends the requests that they send.

load common

# Makes a script that imports Horovod and then runs tests/rank/horovod.
script() { # WORD...
    cat >train.py <<END
import os, sys
try:
    import horovod.torch as hvd
except ImportError:
    hvd = None
os.execv("$RANK/horovod", ["horovod"] + sys.argv[1:])
END
}

# Checks that NP ranks of a program that started Horovod TIMES times printed the right sums.
sums_are() { # NP TIMES
    local rank sum=$(($1 * ($1 + 1) / 2))

    [ "$(wc -l <"$OUT")" = $(($1 * $2)) ] || { show; return 1; }
    for ((rank = 0; rank < $1; rank++)); do
        [ "$(grep -cx "rank $rank of $1: sums $sum $sum $((rank + 1))" "$OUT")" = "$2" ] || { show; return 1; }
    done
}

@test "ranks of --env horovod find each other in every scope and compute the right sums" {
    for np in 1 2 4 16; do
        dtrun --no-tag -np "$np" --env horovod "$RANK/horovod" elastic
        code_is 0
        err_is_empty
        sums_are "$np" 1
    done
    clean
}

@test "--env horovod sets the variables that name the rendezvous and the interface" {
    dtrun --no-tag -np 2 --env horovod sh -c 'env | grep -E "^(HOROVOD|PYTHONUNB)" | grep -v _PORT= | sort'
    code_is 0
    [ "$(sort -u "$OUT")" = "HOROVOD_CONTROLLER=gloo
HOROVOD_CPU_OPERATIONS=gloo
HOROVOD_CROSS_RANK=0
HOROVOD_CROSS_SIZE=1
HOROVOD_GLOO_IFACE=lo
HOROVOD_GLOO_RENDEZVOUS_ADDR=127.0.0.1
HOROVOD_HOSTNAME=localhost
HOROVOD_LOCAL_RANK=0
HOROVOD_LOCAL_RANK=1
HOROVOD_LOCAL_SIZE=2
HOROVOD_RANK=0
HOROVOD_RANK=1
HOROVOD_SIZE=2
PYTHONUNBUFFERED=1" ] || { show; return 1; }
    dtrun -np 2 --env horovod -x HOROVOD_CONTROLLER=mpi true
    code_is 2
    err_has "-x HOROVOD_CONTROLLER: --env horovod sets it for every rank"
    clean
}

@test "Horovod programs can use process sets and start Horovod again" {
    dtrun --no-tag -np 4 --env horovod "$RANK/horovod" sets again
    code_is 0
    sums_are 4 3
    clean
}

@test "the rendezvous accepts requests that arrive byte by byte" {
    dtrun --no-tag -np 3 --env horovod "$RANK/horovod" split
    code_is 0
    sums_are 3 1
    clean
}

@test "clients that send nothing, or half a request, do not hold up the others" {
    dtrun --no-tag -np 4 --env horovod "$RANK/horovod" crowd
    code_is 0
    sums_are 4 1
    clean
}

@test "the rendezvous answers each malformed request with its HTTP status, and reports refusals once" {
    dtrun --no-tag -np 1 --env horovod "$RANK/horovod" statuses
    code_is 0
    out_is "POST: 405
no key: 400
no length: 411
chunks: 501
HTTP/2: 505
too large: 413
long head: 431
after that: 200
"
    err_lines 1
    err_has "localhost: Horovod's rendezvous refused a request (Content Too Large)"
    clean
}

@test "after a rank dies while others wait for it, the next generation finds each other anew" {
    dtrun --no-tag -np 4 --env horovod --max-restarts 1 "$RANK/horovod" die-once
    code_is 0
    err_has "rank 1 (localhost, pid "
    err_has "restarting 4 ranks"
    sums_are 4 1
    clean
}

@test "each generation has a rendezvous of its own, which ends with it" {
    cat >ports <<'END'
echo "$HOROVOD_GLOO_RENDEZVOUS_PORT"
[ "$DTRUN_RESTART_COUNT" = 0 ] || exit 0
kill -KILL $$
END
    dtrun --no-tag -np 1 --env horovod --max-restarts 1 sh ports
    code_is 0
    [ "$(sort -u "$OUT" | wc -l)" = 2 ]
    for port in $(cat "$OUT"); do
        ! (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "port $port still accepts connections"; false; }
    done
    clean
}

@test "on one machine the rendezvous serves its own address only" {
    cat >ask <<'END'
import os, socket
for addr in "127.0.0.1", "127.0.0.2":
    s = socket.create_connection((addr, int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])))
    try:
        s.sendall(b"GET /s/k HTTP/1.1\r\n\r\n")
        print(addr, s.recv(100)[:12].decode())
    except ConnectionError:
        print(addr, "")
END
    dtrun --no-tag -np 1 --env horovod python3 ask
    code_is 0
    out_is "127.0.0.1 HTTP/1.1 404
127.0.0.2 
"
    clean
}

@test "a script that imports Horovod gets a rendezvous without --env horovod" {
    script
    dtrun --no-tag -np 4 python3 train.py
    code_is 0
    err_is_empty
    sums_are 4 1
    dtrun --no-tag -np 3 --max-restarts 1 python3 train.py die-once
    code_is 0
    sums_are 3 1
    dtrun --no-tag -np 2 sh -c 'exec python3 train.py'
    code_is 0
    sums_are 2 1
    printf '#!/bin/sh\nexec python3 "./train.py"\n' >start
    dtrun --no-tag -np 2 sh start
    code_is 0
    sums_are 2 1
    dtrun --no-tag -np 2 python3 -c "import os; os.execv('$RANK/horovod', ['horovod']); import horovod"
    code_is 0
    sums_are 2 1
    echo 'import train' >main.py
    dtrun --no-tag -np 2 python3 main.py
    code_is 0
    sums_are 2 1
    clean
}

@test "a script that does not import Horovod gets none of its variables" {
    echo 'import os; print([v for v in os.environ if v.startswith("HOROVOD")])  # import horovod' >plain.py
    dtrun --no-tag -np 1 python3 plain.py
    code_is 0
    out_is "[]
"
    clean
}

@test "dtrun leaves Horovod alone if the user sets or unsets HOROVOD_CONTROLLER, and one line says so" {
    script
    sed -i 's/os.execv.*/print(os.environ.get("HOROVOD_SIZE"), os.environ.get("HOROVOD_CONTROLLER"))/' train.py
    dtrun --no-tag -np 2 -x HOROVOD_CONTROLLER=mpi python3 train.py
    code_is 0
    out_is "None mpi
None mpi
"
    err_lines 1
    err_has "dtrun: localhost: python3 uses Horovod (import horovod in train.py), but HOROVOD_CONTROLLER is set or unset by you: its ranks are not told where the others are; --env horovod tells them"
    dtrun --no-tag -np 1 --unset HOROVOD_CONTROLLER python3 train.py
    out_is "None None
"
    err_lines 1
    clean
}

# Makes train.py, which uses a package that uses what looks like Horovod. dtrun does not recognise it.
detour() {
    make_load
    mkdir -p site/horovod
    cp horovod/mpi_lib.so site/horovod/mpi_lib_v2.cpython-311.so
    printf 'import ctypes, glob\nctypes.CDLL(glob.glob(__path__[0] + "/mpi_lib*")[0])\n' >site/horovod/__init__.py
    echo 'import horovod' >site/package.py
    sed 's/^import/import package,/' load.py >train.py
    export PYTHONPATH="$T/site"
}

@test "a program that uses Horovod only through an installed package is warned of once, also if it restarts" {
    detour
    dtrun_start --no-tag -np 2 --max-restarts 1 python3 train.py
    await has_line 'has loaded Horovod' "$ERR" || { show; false; }
    out_has 2 '^loaded$'
    kill -KILL "$(sed -n 's/.*: process \([0-9]*\) has loaded.*/\1/p' "$ERR")"
    out_has 4 '^loaded$'
    await_look
    dtrun_wait
    code_is 0
    [ "$(grep -c 'has loaded' "$ERR")" = 1 ] || { show; false; }
    grep -qx "dtrun: localhost: rank [01] (localhost): process [0-9]* has loaded Horovod ($T/site/horovod/mpi_lib_v2.cpython-311.so), but is not told where the other ranks are: every rank that calls hvd.init() trains alone, as rank 0 of 1; --env horovod tells them" "$ERR"
    clean
}

@test "Horovod that is served, or a job of one rank, gets no warning" {
    detour
    is_not_warned -np 2 --env horovod python3 train.py
    is_not_warned -np 1 python3 train.py
    is_not_warned -np 2 env HOROVOD_RANK=0 python3 train.py
    clean
}

@test "after the line about HOROVOD_CONTROLLER there is no second warning" {
    detour
    echo 'import horovod' >>train.py
    dtrun_start --no-tag -np 2 -x HOROVOD_CONTROLLER=mpi python3 train.py
    out_has 2 '^loaded$'
    await_look
    dtrun_wait
    code_is 0
    err_lines 1
    err_has "python3 uses Horovod (import horovod in train.py)"
    clean
}

@test "a Horovod script whose ranks have lost their environment is warned of, also with --env horovod" {
    detour
    dtrun_start --no-tag -np 2 --env horovod env -i PATH="$PATH" PYTHONPATH="$PYTHONPATH" python3 train.py
    await has_line 'has loaded Horovod' "$ERR" || { show; false; }
    : >end
    dtrun_wait
    code_is 0
    err_lines 1
    err_has "mpi_lib_v2.cpython-311.so), but has none of the rank's environment: every rank that calls hvd.init() trains alone, as rank 0 of 1; env -i, sudo and containers may remove it"
    clean
}

@test "a rank that maps very many files is still looked at" {
    make_load
    cat >maps.py <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
file = os.open("x" * 250, os.O_CREAT | os.O_RDWR)
room, size = libc.mmap(None, 1 << 24, 0, 0x22, -1, 0), 1 << 24 # for the library: after all others, but loaded last
for i in range(60000):
    if libc.mmap(None, 4096, 1, 1, file, (i % 2) << 17) == ctypes.c_void_p(-1).value:
        sys.exit("mmap: " + os.strerror(ctypes.get_errno()))
libc.munmap(ctypes.c_void_p(room), ctypes.c_size_t(size))
ctypes.CDLL(sys.argv.pop())
exec(open("load.py").read())
END
    [ "$(cat /proc/sys/vm/max_map_count)" -ge 65000 ] || skip "too low a vm.max_map_count"
    dtrun_start --no-tag -np 2 python3 maps.py "$T/horovod/mpi_lib.so"
    await has_line 'has loaded Horovod' "$ERR" || { show; false; }
    pid=$(sed -n 's/.*: process \([0-9]*\) has loaded.*/\1/p' "$ERR")
    [ "$(sed '/mpi_lib/q' "/proc/$pid/maps" | wc -c)" -gt $((16 * 1024 * 1024)) ]
    : >end
    dtrun_wait
    code_is 0
    clean
}
