"""More of the corpus, written and labelled by somebody who did not know how the Judge decides, after the fifth look: the programs from a
to m; sixth_look_b.py has those from n to z.

As in second_look.py, drivers go faster or slower by their seed, and scripts choose a pause by it.
"""
import subprocess
import time

import sixth_drivers_a as drive
from drivers import http_load
from fifth_look import java
from programs import PROGRAMS, PYTHON, SCRIPTS, Program, compiled, script, write
from second_drivers import paced
from third_drivers import local

SIXTH_LOOK_A = set(PROGRAMS)

# C, C++, Rust and Go with libraries.
Program("capnproto", "g++ capnproto libcapnp-dev", compiled("exchanges.cpp", "sh", "-c", """
    sed -n 's,^// capnp ,,p' @in > exchanges.capnp
    capnp compile -oc++ exchanges.capnp
    g++ -O1 -I. @in exchanges.capnp.c++ -o @out -lcapnp -lkj"""))
Program("crossbeam", "rustc cargo librust-crossbeam-epoch-dev", compiled("settings.rs", "sh", "-ec", r"""
    mkdir .cargo
    printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "/usr/share/cargo/registry"\n' > .cargo/config.toml
    printf '[package]\nname = "settings"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\ncrossbeam-epoch = "0.9"\n[[bin]]\nname = "settings"\npath = "@in"\n' > Cargo.toml
    cargo build --release --offline
    cp target/release/settings @out"""))
Program("client_golang", "golang-go golang-github-prometheus-client-golang-dev", compiled(
    "metrics.go", "sh", "-c", "GOPATH=/usr/share/gocode go build -o @out @in"))
Program("libmicrohttpd", "gcc libmicrohttpd-dev", lambda place: compiled("offers.c", "gcc", "-O1", "@in", "-o", "@out", "-lmicrohttpd")(place) + [
    str(place.port)], paced(http_load(0.06)))

# Interpreters and runtimes.
Program("guava", "openjdk-17-jdk-headless libguava-java", java(
    "Subscribers.java", ["guava"], "-Xms24m", "-Xmn9m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))
Program("hsqldb", "openjdk-17-jdk-headless libhsqldb-java", java(
    "Statements.java", ["hsqldb"], "-Xms24m", "-Xmn8m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))
Program("marshmallow", "python3-marshmallow", script(PYTHON, "@dynamic_schemas.py"))
Program("mobx", "", script("node", "--max-semi-space-size=1", "@views_of_shares.js"), npm=("mobx@6",))


# Servers.
def coturn(place):
    return ["turnserver", "-n", "--no-auth", "--no-tls", "--no-dtls", "--no-tcp", "--no-tcp-relay", "--no-cli", "--allow-loopback-peers",
            "--no-software-attribute", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1", f"--listening-port={place.port}", "--relay-threads=1",
            "--realm=town.example", f"--userdb={place.room}/users", f"--pidfile={place.room}/pid", f"--log-file={place.room}/log", "--simple-log"]


def knot(place):
    write(place, "town.zone", "town.example. 3600 SOA ns.town.example. root.town.example. 1 3600 600 86400 300\ntown.example. NS ns\nns A 127.0.0.1\n")
    return ["knotd", "-c", write(place, "knot.conf", f"""
server:
    listen: 127.0.0.1@{place.port}
    rundir: "{place.room}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "{place.room}"
    journal-db-max-size: 40M
acl:
  - id: near
    address: 127.0.0.1
    action: update
template:
  - id: default
    storage: "{place.room}"
    zonefile-sync: -1
    journal-content: none
    acl: near
zone:
  - domain: town.example
    file: "{place.room}/town.zone"
""")]


Program("coturn", "coturn", coturn, paced(drive.turn_visitors))
Program("knot", "knot", knot, paced(drive.registrations))


# A desktop.
def beside(place, command):
    """Starts what is not watched, and waits until it listens."""
    place.helper = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            local(place).close()
            return
        except OSError:
            time.sleep(0.1)


def dunst(place):
    """A screen and a bus besides; the bus ends with the screen."""
    bus = f"unix:path={place.room}/bus"
    beside(place, ["sh", "-c", f"""
        setpriv --pdeathsig KILL dbus-daemon --session --nofork --nopidfile --address={bus} &
        while ! test -e {place.room}/bus; do sleep 0.1; done
        exec Xvfb :{place.port - 6000} -screen 0 800x600x24 -listen tcp -nolisten unix -nolisten local -nolock -ac"""])
    return (["dunst", "-conf", write(place, "dunstrc", f"""
[global]
    history_length = {0 if place.leaks else 20}
    max_icon_size = 128
    notification_limit = 5
""")], {"DISPLAY": f"127.0.0.1:{place.port - 6000}", "DBUS_SESSION_BUS_ADDRESS": bus})


def mpv(place):
    """Hears a station, whose server is besides; what was heard is kept for going back, some of it, or as much as there is memory."""
    beside(place, [PYTHON, str(SCRIPTS / "radio.py"), str(place.port), str(place.seed), str(30000 + 8000 * place.seed)])
    kept = "8GiB" if place.leaks else "2MiB"
    return ["mpv", "--no-config", "--no-video", "--ao=null", "--really-quiet", "--no-input-terminal", "--cache=yes", "--demuxer-max-bytes=1MiB",
            f"--demuxer-max-back-bytes={kept}", f"http://127.0.0.1:{place.port}/"]


Program("dunst", "dunst xvfb dbus python3-jeepney", dunst, paced(drive.notifications))
Program("mpv", "mpv", mpv)

SIXTH_LOOK_A = set(PROGRAMS) - SIXTH_LOOK_A
