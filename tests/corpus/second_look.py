"""Programs written and labelled after every one of programs.py had been looked at; see there.

Their authors knew nothing of how the Judge decides. Rates differ from seed to seed.
"""
import os
import shutil
import subprocess
import threading

from drivers import http_load, line_load
from programs import CACHE, PROGRAMS, PYTHON, SCRIPTS, Program, compiled, script, serve_site, served, static_site, write
from second_drivers import (aria2_load, carbon_load, deaf_subscriber, gdb_text, gnuplot_text, line_sessions, m4_text, mail_load, mariadb_load,
                            metrics_target, named_load, nats_load, paced, pixmap_load, unbound_load, weechat_load, xmpp_load)

SECOND_LOOK = set(PROGRAMS)
MARIADB_LOCK = threading.Lock()  # its files are made once

# Node's.
Program("winston", "", served("node", "@winston.js"), paced(http_load(0.04)), npm=("winston@3",))
Program("dataloader", "", served("node", "--max-semi-space-size=2", "@dataloader.js"), paced(http_load(0.04)), npm=("dataloader@2", "graphql@16"))
Program("rxjs", "", script("node", "@rxjs.js"), npm=("rxjs@7",))
Program("hot_reload", "", script("node", "@hot_reload.js"), npm=("sucrase@3",))

# Python's.
Program("sqlalchemy", "python3-sqlalchemy", script(PYTHON, "@identity_map.py"))
Program("twisted", "python3-twisted", lambda place: [PYTHON, str(SCRIPTS / "twisted_chat.py"), place.form, str(place.port)],
        paced(line_sessions(0.05, 10)))
Program("cherrypy", "python3-cherrypy3", lambda place: [PYTHON, str(SCRIPTS / "cherrypy_app.py"), place.form, str(place.port)],
        paced(http_load(0.06)))
Program("aiosmtpd", "python3-aiosmtpd", lambda place: [PYTHON, str(SCRIPTS / "mail_sink.py"), place.form, str(place.port)],
        paced(mail_load(0.05)))
Program("beautifulsoup", "python3-bs4 python3-lxml", script(PYTHON, "@soup.py"))
Program("zeromq", "python3-zmq", served(PYTHON, "@zmq_feed.py"), deaf_subscriber)


# Servers.
def mariadb(place):
    fresh = CACHE / "mariadb"
    with MARIADB_LOCK:
        if not fresh.exists():
            made = CACHE / f"mariadb-{os.getpid()}"
            subprocess.run(["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={made}", "--innodb-log-file-size=4M",
                            "--auth-root-authentication-method=normal"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            (made / "test").mkdir(exist_ok=True)
            os.rename(made, fresh)
    shutil.copytree(fresh, place.room / "data")
    return ["mariadbd", "--no-defaults", "--user=root", f"--datadir={place.room}/data", f"--port={place.port}", "--bind-address=127.0.0.1",
            f"--socket={place.room}/socket", f"--pid-file={place.room}/pid", "--skip-grant-tables", "--innodb-buffer-pool-size=8M",
            "--innodb-log-file-size=4M"]


def unbound(place):
    return ["unbound", "-d", "-p", "-c", write(place, "unbound.conf", f"""
server:
  interface: 127.0.0.1@{place.port}
  username: ""
  chroot: ""
  directory: "{place.room}"
  use-syslog: no
  do-daemonize: no
  local-zone: "example." static
remote-control:
  control-enable: yes
  control-interface: {place.room}/control
  control-use-cert: no
""")]


def named(place):
    return ["named", "-f", "-n", "1", "-c", write(place, "named.conf", f"""
options {{
  directory "{place.room}"; pid-file none; session-keyfile none; lock-file none;
  listen-on port {place.port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
  recursion yes; forward only; forwarders {{ 127.0.0.1 port {place.port + 1}; }};
  dnssec-validation no; max-cache-size {"unlimited" if place.leaks else "2M"};
}};
controls {{ }};
logging {{ category default {{ null; }}; }};
""")]


def prosody(place):
    limit = 10**9 if place.leaks else 200
    config = write(place, "prosody.cfg.lua", f"""
run_as_root = true
pidfile = "{place.room}/pid"
data_path = "{place.room}/data"
modules_enabled = {{ "saslauth", "offline" }}
modules_disabled = {{ "s2s", "tls" }}
c2s_ports = {{ {place.port} }}
c2s_interfaces = {{ "127.0.0.1" }}
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
storage = {{ accounts = "internal"; offline = "memory" }}
storage_archive_item_limit = {limit}
limits = {{ }}
log = {{ error = "{place.room}/log" }}
VirtualHost "localhost"
""")
    accounts = place.room / "data/localhost/accounts"
    accounts.mkdir(parents=True)
    for name in ("sender", "absent"):
        (accounts / f"{name}.dat").write_text('return { ["password"] = "secret"; };\n')
    return ["prosody", "-F", "--config", config]


def prometheus(place):
    return (["prometheus", f"--web.listen-address=127.0.0.1:{place.port}", f"--storage.tsdb.path={place.room}/data", "--config.file=" + write(
        place, "prometheus.yml", f"""
scrape_configs:
  - job_name: shop
    scrape_interval: 400ms
    scrape_timeout: 400ms
    static_configs: [{{targets: ['127.0.0.1:{place.port + 1}']}}]
""")], {"GOGC": "20"})  # as is advised where memory is short


def aria2(place):
    static_site(place)
    (place.room / "downloads").mkdir()
    serve_site(place, place.port + 1)
    return ["aria2c", "--no-conf", "--quiet", "--enable-rpc", "--rpc-listen-all=false", f"--rpc-listen-port={place.port}", "--disable-ipv6",
            f"--dir={place.room}/downloads", "--enable-dht=false", "--file-allocation=none", f"--max-download-result={10**9 if place.leaks else 20}"]


def carbon(place):
    """Carbon's cache: disks that keep up, or that write one metric per second."""
    write(place, "storage-schemas.conf", "[all]\npattern = .*\nretentions = 1s:1m\n")
    return ["carbon-cache", "--nodaemon", f"--pidfile={place.room}/pid", "--config=" + write(place, "carbon.conf", f"""
[cache]
STORAGE_DIR = {place.room}
CONF_DIR = {place.room}
LOG_DIR = {place.room}
LOCAL_DATA_DIR = {place.room}/whisper
USER =
MAX_CACHE_SIZE = inf
MAX_UPDATES_PER_SECOND = {1 if place.leaks else 1000}
MAX_CREATES_PER_MINUTE = inf
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = {place.port}
PICKLE_RECEIVER_PORT = 0
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = {place.port + 1}
LOG_UPDATES = False
LOG_CREATES = False
ENABLE_LOGROTATION = False
"""), "start"]


def weechat(place):
    return ["weechat-headless", "-d", str(place.room / "weechat"), "-r", f"/set fifo.file.path {place.room}/fifo", "-r", "/fifo enable",
            "-r", f"/set weechat.history.max_buffer_lines_number {0 if place.leaks else 300}", "-r", "/plugin unload logger"]


def gstreamer(place):
    limits = "max-size-buffers=0 max-size-bytes=0 max-size-time=0" if place.leaks else "max-size-buffers=50 leaky=downstream"
    video = f"video/x-raw,format=I420,width={48 + 16 * place.seed},height=64,framerate=40/1"
    return ["gst-launch-1.0", "-q", "videotestsrc", "is-live=true", "!", video, "!", "queue", *limits.split(), "!",
            "identity", "sleep-time=100000", "!", "fakesink"]


Program("mariadb", "mariadb-server", mariadb, paced(mariadb_load))
Program("unbound", "unbound", unbound, paced(unbound_load))
Program("named", "bind9", named, paced(named_load))
Program("prosody", "prosody", prosody, paced(xmpp_load))
Program("nats", "nats-server", lambda place: ["nats-server", "-a", "127.0.0.1", "-p", str(place.port), "-js", "-sd", str(place.room / "js")],
        paced(nats_load))
Program("prometheus", "prometheus", prometheus, paced(metrics_target))
Program("aria2", "aria2", aria2, paced(aria2_load))
Program("carbon", "graphite-carbon", carbon, paced(carbon_load))
Program("xvfb", "xvfb python3-xlib", lambda place: ["Xvfb", f":{place.port - 6000}", "-listen", "tcp", "-nolisten", "unix", "-nolisten", "local",
                                                    "-nolock", "-ac", "-noreset", "-screen", "0", "320x240x24"], paced(pixmap_load))
Program("weechat", "weechat-headless weechat-plugins", weechat, paced(weechat_load))
Program("gstreamer", "gstreamer1.0-tools gstreamer1.0-plugins-base", gstreamer)
Program("sinatra", "puma ruby-sinatra", lambda place: (
    ["puma", "-q", "-t", "2:2", "-b", f"tcp://127.0.0.1:{place.port}", str(SCRIPTS / "sinatra.ru")], {"FORM": place.form, "RACK_ENV": "production"}),
    paced(http_load(0.04)))


def jar(*names):
    return ":".join(f"/usr/share/java/{name}.jar" for name in names)


# Java's. The heap may be 256 MiB at most.
JAVA = ("java", "-Xms24m", "-Xmx256m", "-XX:+UseSerialGC")
Program("h2", "openjdk-17-jdk-headless libh2-java", script(*JAVA, "-cp", jar("h2"), "@Orders.java"))
Program("clojure", "openjdk-17-jdk-headless clojure", script(
    *JAVA, "-cp", jar("clojure", "spec.alpha", "core.specs.alpha"), "clojure.main", "@lazy.clj"))
Program("groovy", "openjdk-17-jdk-headless groovy", script(*JAVA, "-cp", jar("groovy-all"), "groovy.ui.GroovyMain", "@rules.groovy"))

# Other runtimes and interpreters.
Program("rust", "rustc", compiled("cycles.rs", "rustc", "-O", "@in", "-o", "@out"))
Program("goroutines", "golang-go", compiled("goroutines.go", "go", "build", "-o", "@out", "@in"))
Program("elixir", "elixir", script("elixir", "@binaries.exs"))
Program("mojolicious", "libmojolicious-perl", script("perl", "@mojo.pl"))
Program("neovim", "neovim", lambda place: (["nvim", "--headless", "-u", "NONE", "-n", "-i", "NONE", "-S", str(SCRIPTS / "buffers.lua")],
                                           {"FORM": place.form, "SEED": str(place.seed)}))

# Tools that read their input.
Program("m4", "m4", lambda place: ["m4"], paced(line_load(m4_text, 0.02)))
Program("gdb", "gdb", lambda place: ["gdb", "-q", "-nx", "-ex", "set print elements 4", "-ex", "set confirm off"], paced(line_load(gdb_text, 0.07)))
Program("gnuplot", "gnuplot-nox", lambda place: ["gnuplot", "-"], paced(line_load(gnuplot_text, 0.1)))

SECOND_LOOK = set(PROGRAMS) - SECOND_LOOK
