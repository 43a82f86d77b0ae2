"""Half of a sixth look: programs from n to z, written and labelled by somebody who did not know how the Judge decides.

As in second_look.py, drivers go faster or slower by their seed, and scripts choose a pause by it.
"""
import socket
import subprocess
import time

import sixth_drivers_b as drive
from drivers import http_load, line_load
from fifth_look import java
from programs import PROGRAMS, PYTHON, SCRIPTS, Program, compiled, script, serve_site, served, static_site, write
from second_drivers import paced

SIXTH_LOOK_B = set(PROGRAMS)


# Servers and a database.
def stunnel(place):
    """Before a plain server, with a certificate of its own."""
    static_site(place)
    serve_site(place, place.port + 1)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=one.test",
                    "-days", "9", "-keyout", str(place.room / "key.pem"), "-out", str(place.room / "cert.pem")], check=True, capture_output=True)
    return ["stunnel", write(place, "stunnel.conf", f"""
foreground = yes
pid =
syslog = no
debug = err
output = {place.room}/stunnel.log
[site]
accept = 127.0.0.1:{place.port}
connect = 127.0.0.1:{place.port + 1}
cert = {place.room}/cert.pem
key = {place.room}/key.pem
verify = 1
CAfile = {place.room}/cert.pem
sslVersionMax = TLSv1.2
options = NO_TICKET
sessionCacheSize = {0 if place.leaks else 100}
sessionCacheTimeout = 86400
TIMEOUTclose = 0
""")]


def syslog_ng(place):
    return ["syslog-ng", "-F", "--no-caps", "-f", write(place, "syslog-ng.conf", f"""
@version: 3.38
options {{ stats-freq(0); keep-hostname(yes); use-dns(no); log-msg-size(8192); }};
source steps {{ network(ip("127.0.0.1") port({place.port}) transport("tcp")); }};
parser sessions {{
  grouping-by(key("$PID") scope("program") timeout({86400 if place.leaks else 5})
    aggregate(value("MESSAGE" "session $PID of $(context-length) steps") inherit-mode("none")));
}};
destination told {{ file("/dev/null"); }};
log {{ source(steps); parser(sessions); destination(told); }};
"""), "-R", f"{place.room}/persist", "-p", f"{place.room}/pid", "-c", f"{place.room}/control"]


def pmacct(place):
    told = "src_host, dst_host, src_port, dst_port" if place.leaks else "dst_host"
    return ["nfacctd", "-f", write(place, "nfacctd.conf", f"""
daemonize: false
nfacctd_ip: 127.0.0.1
nfacctd_port: {place.port}
plugin_pipe_size: 1024000
plugin_buffer_size: 10240
plugins: memory[hosts]
aggregate[hosts]: {told}
imt_path[hosts]: {place.room}/hosts.pipe
imt_buckets[hosts]: 16411
imt_mem_pools_number[hosts]: {10000 if place.leaks else 16}
""")]


Program("stunnel", "stunnel4 openssl", stunnel, paced(drive.tls_load))
Program("syslog_ng", "syslog-ng-core", syslog_ng, paced(drive.session_log))
Program("pmacct", "pmacct", pmacct, paced(drive.netflow_load))
Program("tarantool", "tarantool", served("tarantool", "@tarantool_sessions.lua"), paced(drive.visit_load))
Program("prom_client", "", served("node", "--max-semi-space-size=2", "@prom_metrics.js"),
        paced(http_load(0.022, drive.order_path, keep=True)), npm=("prom-client@15",))

# The JVM, Go, C++.
Program("timeouts_java", "openjdk-17-jdk-headless", java("Timeouts.java", [], "-Xms16m", "-Xmx160m", "-XX:+UseSerialGC"))
Program("ttl_cache_go", "golang-go golang-github-patrickmn-go-cache-dev", compiled(
    "ttl_cache.go", "env", "GOPATH=/usr/share/gocode", "go", "build", "-o", "@out", "@in"))
Program("protobuf", "g++ pkgconf libprotobuf-dev", compiled(
    "arena.cpp", "sh", "-c", "g++ -std=c++17 -O1 @in -o @out $(pkg-config --cflags --libs protobuf)"))

# Interpreters.
Program("sympy", "python3-sympy", lambda place: (
    script(PYTHON, "@derivatives.py")(place), {"SYMPY_CACHE_SIZE": "None" if place.leaks else "200"}))
Program("xlsxwriter", "python3-xlsxwriter", script(PYTHON, "@xlsx_export.py"))
Program("xml_twig", "perl libxml-twig-perl", script("perl", "@twig_stream.pl"), paced(line_load(drive.order_text, 0.08)))

# A tool of the desktop.
def xterm(place):
    """On a screen of its own, which is not watched."""
    place.helper = subprocess.Popen(["Xvfb", f":{place.port - 6000}", "-listen", "tcp", "-nolisten", "unix", "-nolisten", "local", "-nolock", "-ac",
                                     "-noreset", "-screen", "0", "1280x600x24"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", place.port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.1)
    return (["xterm", "-geometry", "80x30", "-sb", "-sl", "500000" if place.leaks else "1000", "-e", str(SCRIPTS / "builds.sh"), str(place.seed)],
            {"DISPLAY": f"127.0.0.1:{place.port - 6000}"})


Program("xterm", "xterm xvfb", xterm)

SIXTH_LOOK_B = set(PROGRAMS) - SIXTH_LOOK_B
