# How ranks of different hosts find each other: which network they use, and what dtrun prints about hosts that
# cannot reach each other.

load lib

setup_file() {
    cluster_up 3
    [ -z "$CLUSTER_SKIP" ] || return 0
    cluster_second_network 3
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_trust
    cluster_examples
}

teardown() {
    local i

    for i in 1 2 3; do
        cluster_on "$i" nft flush ruleset
        cluster_on "$i" ip link del docker0 2>/dev/null || true
    done
    cluster_await_quiet
}

# N RULE...: filters the packets that host N receives.
filter() {
    local i=$1

    shift
    cluster_on "$i" nft "add table inet t; add chain inet t in { type filter hook input priority 0; };
        $(printf 'add rule inet t in %s;' "$@")"
}

show='echo "$(hostname) $MASTER_ADDR $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME"'

@test "ranks use the addresses at which ssh reaches their hosts, whatever the hosts' own names resolve to" {
    printf '127.0.1.1 host1\n' | cluster_on 1 sh -c 'cat /etc/hosts >>/tmp/h; cat - /tmp/h >/tmp/hosts
        mount --bind /tmp/hosts /etc/hosts'
    cluster_on 1 getent hosts host1 | grep -q '^127.0.1.1 '
    cluster_dtrun -np 3 -H host1,host2,host3 sh -c "$show"
    [ "$RC" = 0 ]
    for i in 1 2 3; do
        grep -qx "\[$((i - 1))\] host$i $CLUSTER_NET.1 eth0 =eth0" "$OUT"
    done
    cluster_dtrun -np 3 -H host1,host2,host3 "$HELLO"
    cluster_on 1 umount /etc/hosts
    [ "$RC" = 0 ]
}

@test "the user's own settings of interfaces for Gloo and NCCL stay" {
    cluster_dtrun -np 2 -H host1,host2 -x GLOO_SOCKET_IFNAME=lo --unset NCCL_SOCKET_IFNAME sh -c "$show"
    [ "$RC" = 0 ]
    grep -qx "\[1\] host2 $CLUSTER_NET.1 lo " "$OUT"
}

@test "rank 0 can listen at MASTER_ADDR and MASTER_PORT, and every host reaches it" {
    cluster_dtrun -np 3 -H host1,host2,host3 python3 -c '
import os, socket
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    s = socket.create_server(at)
    [s.accept()[0].sendall(b"met") for _ in range(2)]
else:
    while True:
        try:
            print(socket.create_connection(at).recv(3))
            break
        except ConnectionRefusedError:
            pass'
    [ "$RC" = 0 ]
    [ "$(grep -c met "$OUT")" = 2 ]
}

@test "--iface chooses another network, by name or by address, for ranks and libraries" {
    for list in eth1 =eth1 ^eth0 10.213.78.0/24 nothing,eth1; do
        cluster_dtrun --iface "$list" -np 3 -H host1,host2,host3 sh -c "$show"
        [ "$RC" = 0 ]
        grep -qx "\[2\] host3 10.213.78.1 eth1 =eth1" "$OUT"
    done
    # The first network carries only ssh. Linked ranks connect over the second one.
    filter 2 'iif eth0 tcp dport != 22 ct state new drop'
    cluster_dtrun --iface eth1 -np 3 -H host1,host2,host3 "$HELLO"
    [ "$RC" = 0 ]
}

@test "check 36: an --iface that a host lacks, or loopback, is reported for each host, and nothing starts" {
    cluster_dtrun --iface ib0 -np 2 -H host1,host2 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    grep -q "^dtrun: host2: --iface ib0: .*lo (127.0.0.1.*), eth0 ($CLUSTER_NET.2.*), eth1 (10.213.78.2" "$ERR"
    [ ! -e "$CLUSTER_SHARED/ran" ]
    cluster_dtrun --iface lo -np 2 -H host1,host2 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host1 cannot reach host2 at 127.0.0.1:.* a loopback address leads to no other host' "$ERR"
    [ ! -e "$CLUSTER_SHARED/ran" ]
    cluster_dtrun --iface 10.0.0.0/99 -np 2 -H host1,host2 true
    [ "$RC" = 2 ]
    cluster_err_has "--iface 10.0.0.0/99: 10.0.0.0/99 is not a network"
}

@test "check 36: a private network of each host is not used, although its addresses answer" {
    for i in 1 2 3; do
        cluster_on "$i" ip link add docker0 type bridge
        cluster_on "$i" ip link add dummy0 type dummy 2>/dev/null || true
        cluster_on "$i" ip address add 172.17.0.1/16 dev docker0
        cluster_on "$i" ip link set dummy0 master docker0 up 2>/dev/null || true
        cluster_on "$i" ip link set docker0 up
    done
    cluster_dtrun --iface docker0,eth0 -np 3 -H host1,host2,host3 sh -c "$show"
    [ "$RC" = 0 ]
    grep -qx "\[1\] host2 $CLUSTER_NET.1 eth0 =eth0" "$OUT"
    cluster_dtrun --iface docker0 -np 2 -H host1,host2 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host1 cannot reach host2 at 172.17.0.1:[0-9]* (docker0): ' "$ERR"
    cluster_err_has "the hosts cannot reach each other, nothing was started"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

@test "hosts behind a firewall or a small MTU are named with what was observed" {
    filter 3 "ip saddr $CLUSTER_NET.2 tcp dport != 22 ct state new drop"
    filter 2 "ip saddr $CLUSTER_NET.1 meta length > 1400 drop"
    filter 1 "ip saddr $CLUSTER_NET.3 tcp dport != 22 ct state new reject with tcp reset"
    cluster_dtrun --iface eth0 -np 3 -H host1,host2,host3 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    grep -q "^dtrun: host2 cannot reach host3 at $CLUSTER_NET.3:[0-9]* (eth0): no answer within 5 s; is there a firewall?" "$ERR"
    grep -q "^dtrun: host1 cannot reach host2 at $CLUSTER_NET.2:[0-9]* (eth0): small packets pass, but 12 KiB sent there do not arrive; is the network between them slow, does it lose many packets, or is the MTU too large for it (eth0 there has [0-9]*)?" "$ERR"
    grep -q "^dtrun: host2 cannot reach host1 .*: small packets pass, but 12 KiB from there do not arrive" "$ERR"
    grep -q "^dtrun: host3 cannot reach host1 .*: connection refused; is there a firewall" "$ERR"
    cluster_err_lines 5
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

@test "a blocked network does no harm if there is another, and a host without a common address is named" {
    filter 1 "iif eth0 ip saddr $CLUSTER_NET.2 tcp dport != 22 ct state new drop"
    cluster_dtrun -np 3 -H host1,host2,host3 sh -c "$show"
    [ "$RC" = 0 ]
    grep -qx "\[0\] host1 10.213.78.1 eth1 =eth1" "$OUT"
    grep -qx "\[2\] host3 10.213.78.1 eth0 =eth0" "$OUT"
    filter 1 "iif eth1 ip saddr 10.213.78.3 tcp dport != 22 ct state new drop"
    cluster_dtrun -np 3 -H host1,host2,host3 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    grep -q "^dtrun: host1 has no address at which all hosts reach it: host2 at 10.213.78.1, host3 at $CLUSTER_NET.1" "$ERR"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}
