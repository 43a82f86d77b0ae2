"""More of the corpus, written and labelled by somebody who did not know how the Judge decides, after the fourth look.

As in second_look.py, drivers go faster or slower by their seed, and scripts choose a pause by it.
"""
import shutil
import subprocess

import fifth_drivers as drive
from drivers import http_load, line_load
from programs import PROGRAMS, PYTHON, SCRIPTS, Program, compiled, script, served, write
from second_drivers import paced

FIFTH_LOOK = set(PROGRAMS)

# Node's.
Program("graphql", "", served("node", "@graphql_documents.js"), paced(http_load(0.06, drive.graphql_path)), npm=("graphql@16", "lru-cache@10"))
Program("esbuild", "", script("node", "--expose-gc", "--max-semi-space-size=2", "@esbuild_previews.js"), npm=("esbuild@0.21",))
Program("node_cluster", "", served("node", "--max-semi-space-size=2", "@cluster_limits.js"), paced(drive.proxy_load))

# Python's.
Program("torch", "python3-torch", lambda place: (script(PYTHON, "@losses.py")(place), {"OMP_NUM_THREADS": "1"}))
Program("pyqt", "python3-pyqt5", lambda place: (script(PYTHON, "@dialogs.py")(place), {"QT_QPA_PLATFORM": "offscreen"}))
Program("gevent", "python3-gevent", script(PYTHON, "@greenlets.py"))
Program("leveldb", "python3-plyvel", script(PYTHON, "@leveldb_pages.py"))
Program("celery", "python3-celery", lambda place: (
    [PYTHON, "-m", "celery", "-A", "celery_reports", "worker", "--beat", "--concurrency", "2", "--loglevel", "ERROR", "--without-gossip",
     "--without-mingle", "--without-heartbeat"],
    {"FORM": place.form, "SEED": str(place.seed), "PYTHONPATH": str(SCRIPTS), "PYTHONDONTWRITEBYTECODE": "1"}))


# Java's.
def java(source, jars, *options):
    """Compiled into the place's room, and run from there."""
    def prepare(place):
        path = ":".join([str(place.room), *(f"/usr/share/java/{name}.jar" for name in jars)])
        subprocess.run(["javac", "-cp", path, "-d", str(place.room), str(SCRIPTS / source)], check=True)
        return ["java", *options, "-cp", path, source.removesuffix(".java"), place.form, str(place.seed)]
    return prepare


Program("java_deflate", "openjdk-17-jdk-headless", java("Deflaters.java", [], "-Xmx40m"))
Program("rhino", "openjdk-17-jdk-headless librhino-java", java("Rules.java", ["rhino"], "-Xms24m", "-Xmx128m", "-XX:+UseSerialGC"))
Program("java_executors", "openjdk-17-jdk-headless", java("Executors.java", [], "-Xmx48m", "-XX:+UseSerialGC"))

# Other languages and interpreters.
Program("cgo", "golang-go gcc", compiled("cgo.go", "go", "build", "-o", "@out", "@in"))
Program("nokogiri", "ruby ruby-nokogiri", script("ruby", "@nokogiri_titles.rb"))
Program("twig", "php-cli php-twig", script("php", "-d", "memory_limit=-1", "-d", "include_path=/usr/share/php", "@twig_mails.php"))
Program("perl_dbi", "perl libdbd-sqlite3-perl", script("perl", "@statements.pl"))
Program("pango", "gcc pkgconf libpango1.0-dev", compiled("labels.c", "sh", "-c", "gcc -O1 @in -o @out $(pkg-config --cflags --libs pangocairo)"))
Program("elixir_visitors", "elixir", script("elixir", "@visitors.exs"))
Program("copas", "lua5.1 lua-copas", served("lua5.1", "@copas_chat.lua"), paced(drive.chat_load))
Program("ksh", "ksh", script("ksh", "@events.ksh"), paced(line_load(drive.event_text, 0.015)))


# Servers, databases, an office.
def influxdb(place):
    return ["influxd", "-config", write(place, "influxdb.conf", f"""
reporting-disabled = true
bind-address = "127.0.0.1:{place.port + 1}"
[meta]
  dir = "{place.room}/meta"
[data]
  dir = "{place.room}/data"
  wal-dir = "{place.room}/wal"
  query-log-enabled = false
  max-series-per-database = 0
  cache-snapshot-memory-size = "512k"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{place.port}"
  log-enabled = false
[logging]
  level = "error"
""")]


def rabbitmq(place):
    """With a port mapper of its own, which else stays."""
    place.helper = subprocess.Popen(["epmd", "-port", str(place.port + 3), "-address", "127.0.0.1"], stdout=subprocess.DEVNULL)
    write(place, "enabled_plugins", "[rabbitmq_stomp].\n")
    settings = {"RABBITMQ_NODENAME": f"corpus{place.port}@localhost", "RABBITMQ_MNESIA_BASE": f"{place.room}/data", "RABBITMQ_LOGS": "-", "ERL_EPMD_PORT": str(place.port + 3),
                "RABBITMQ_LOG_BASE": str(place.room),
                "RABBITMQ_DIST_PORT": str(place.port + 2), "RABBITMQ_ENABLED_PLUGINS_FILE": f"{place.room}/enabled_plugins",
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none", "RABBITMQ_CONFIG_FILE": write(place, "rabbitmq.conf", f"""
listeners.tcp.local = 127.0.0.1:{place.port + 1}
stomp.listeners.tcp.1 = 127.0.0.1:{place.port}
log.console.level = error
""")}
    return ["/usr/lib/rabbitmq/bin/rabbitmq-server"], settings


def znc(place):
    kept = 100000 if place.leaks else 300
    (place.room / "configs").mkdir()
    write(place, "configs/znc.conf", f"""
Version = 1.8.2
MaxBufferSize = 1000000
<Listener local>
  Port = {place.port}
  Host = 127.0.0.1
  IPv4 = true
  IPv6 = false
  SSL = false
</Listener>
<User one>
  Admin = true
  Nick = one
  Ident = one
  ChanBufferSize = {kept}
  <Pass password>
    Method = plain
    Hash = one
  </Pass>
  <Network town>
    Server = 127.0.0.1 {place.port + 1}
    <Chan #town>
      Buffer = {kept}
    </Chan>
  </Network>
</User>
""")
    for path in (place.room, place.room / "configs", place.room / "configs/znc.conf"):
        shutil.chown(path, "irc")
    return ["setpriv", "--reuid=irc", "--regid=irc", "--clear-groups", "znc", "--foreground", "--datadir", str(place.room)]


def office(place):
    """A client besides tells it what to do."""
    place.helper = subprocess.Popen([PYTHON, str(SCRIPTS / "sheets.py"), place.form, str(place.seed), str(place.port)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ["soffice", "--headless", "--norestore", "--nologo", f"-env:UserInstallation=file://{place.room}/profile",
            f"--accept=socket,host=127.0.0.1,port={place.port};urp;"]


Program("influxdb", "influxdb", influxdb, paced(drive.influx_load))
Program("rabbitmq", "rabbitmq-server", rabbitmq, paced(drive.stomp_load))
Program("znc", "znc", znc, paced(drive.irc_town))
Program("libreoffice", "libreoffice-calc-nogui python3-uno", office)
Program("unicorn", "unicorn ruby-rack", lambda place: (
    ["unicorn", "-E", "none", "-l", f"127.0.0.1:{place.port}", "-c", write(place, "unicorn.rb", "worker_processes 2\n"), str(SCRIPTS / "sessions.ru")],
    {"FORM": place.form}), paced(http_load(0.04)))

FIFTH_LOOK = set(PROGRAMS) - FIFTH_LOOK
