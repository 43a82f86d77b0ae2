"""More of the corpus, written and labelled by somebody who did not know how the Judge decides, after the third look.

As in second_look.py, drivers go faster or slower by their seed, and scripts choose a pause by it.
"""
import subprocess

import fourth_drivers as drive
from drivers import http_load, line_load
from programs import CACHE, PROGRAMS, PYTHON, SCRIPTS, Program, compiled, script, served, static_site, write
from second_drivers import paced

FOURTH_LOOK = set(PROGRAMS)


# Node's.
def health_checks(place):
    """The services that are asked keep their connections open, as servers do today."""
    site = static_site(place)
    place.helper = subprocess.Popen([PYTHON, "-m", "http.server", "--bind", "127.0.0.1", "--protocol", "HTTP/1.1", "--directory", str(site),
                                     str(place.port + 1)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return served("node", "@health_checks.js")(place)


def statsd(place):
    return ["node", str(CACHE / "npm/node_modules/statsd/stats.js"), write(place, "statsd.js", f"""{{
  address: "127.0.0.1", port: {place.port}, mgmt_address: "127.0.0.1", mgmt_port: {place.port + 1},
  backends: [], flushInterval: 2000, deleteIdleStats: {"false" if place.leaks else "true"},
}}
""")]


def webpack_watch(place):
    (place.room / "src").mkdir()
    for number in range(10):
        drive.write_source(place, number)
    return script("node", "@webpack_watch.js")(place)


Program("koa", "", served("node", "@koa_basket.js"), paced(http_load(0.04)), npm=("koa@2",))
Program("mikro_orm", "", script("node", "@mikro_orders.js"), npm=("@mikro-orm/core@6", "@mikro-orm/libsql@6"))
Program("socketio", "", served("node", "@socketio_feed.js"), paced(drive.socketio_load), npm=("socket.io@4",))
Program("worker_threads", "", script("node", "@worker_pool.js"))
Program("http_client", "", health_checks)
Program("statsd", "", statsd, paced(drive.statsd_load), npm=("statsd@0.9",))
Program("webpack", "", webpack_watch, paced(drive.source_edits), npm=("webpack@5", "memfs@4"))

# Python's.
Program("sklearn", "python3-sklearn", lambda place: (script(PYTHON, "@knn_models.py")(place), {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}))
Program("waitress", "python3-waitress python3-bottle", served(PYTHON, "@request_logs.py"), paced(http_load(0.04)))
Program("websockets", "python3-websockets", served(PYTHON, "@slow_readers.py"), drive.deaf_websocket)
Program("ipython", "python3-ipython python3-numpy", lambda place: [
    PYTHON, "-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit", "--colors=NoColor", f"--cache-size={20 if place.leaks else 0}",
    "--InteractiveShellApp.exec_lines=import numpy as np"], paced(line_load(drive.notebook_text, 0.5)))
Program("minidom", "", script(PYTHON, "@minidom_orders.py"))

# Java's.
SMALL_JAVA = ("-Xms20m", "-Xmn10m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def java(source, jars, *options):
    """Compiled into the place's room, and run from there."""
    def prepare(place):
        path = ":".join([str(place.room), *(f"/usr/share/java/{name}.jar" for name in jars)])
        subprocess.run(["javac", "-cp", path, "-d", str(place.room), str(SCRIPTS / source)], check=True)
        return (["java", *SMALL_JAVA, *options, "-cp", path, source.removesuffix(".java"), place.form, str(place.seed), str(place.port)],
                {"MALLOC_ARENA_MAX": "2"})
    return prepare


def zookeeper(place):
    jars = ("zookeeper", "zookeeper-jute", "netty-all", "slf4j-api", "slf4j-nop", "snappy-java", "metrics-core", "commons-lang", "commons-cli",
            "commons-io")
    return (["java", *SMALL_JAVA, "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.preAllocSize=1024", "-Dzookeeper.forceSync=no",
             "-Dzookeeper.jmx.log4j.disable=true", "-cp", ":".join(f"/usr/share/java/{name}.jar" for name in jars),
             "org.apache.zookeeper.server.ZooKeeperServerMain", write(place, "zoo.cfg", f"""
dataDir={place.room}/data
clientPort={place.port}
clientPortAddress=127.0.0.1
tickTime=2000
""")], {"MALLOC_ARENA_MAX": "2"})


NETTY = [f"netty-{part}" for part in ("common", "buffer", "resolver", "transport", "codec", "handler")]
Program("netty", "openjdk-17-jdk-headless libnetty-java", java("Frames.java", NETTY, "-Dio.netty.allocator.maxOrder=7"),
        paced(drive.frame_load))
Program("redeploy", "openjdk-17-jdk-headless", java("Redeploy.java", []))
Program("zookeeper", "openjdk-17-jdk-headless libzookeeper-java", zookeeper, paced(drive.zookeeper_load))

# Servers.
Program("starman", "starman", lambda place: (
    ["starman", "--workers", "3", "--max-requests", str(10**6 if place.leaks else 150), "--listen", f"127.0.0.1:{place.port}", "--env", "deployment",
     str(SCRIPTS / "orders.psgi")], {"FORM": place.form}), paced(http_load(0.04)))
Program("pushgateway", "prometheus-pushgateway", lambda place: [
    "prometheus-pushgateway", f"--web.listen-address=127.0.0.1:{place.port}", "--log.level=error"], paced(drive.push_load))
Program("gearmand", "gearman-job-server", lambda place: [
    "gearmand", "-L", "127.0.0.1", "-p", str(place.port), "-u", "root", "-t", "2", f"--log-file={place.room}/log", f"--pid-file={place.room}/pid"],
    paced(drive.gearman_load))
Program("libevent", "gcc libevent-dev", lambda place: compiled("pages.c", "gcc", "-O1", "@in", "-o", "@out", "-levent")(place) + [str(place.port)],
        paced(http_load(0.04)))

# Other languages and interpreters.
Program("activerecord", "ruby ruby-activerecord ruby-sqlite3", script("ruby", "@query_cache.rb"))
Program("monolog", "php-cli php-monolog", script("php", "-d", "memory_limit=-1", "-d", "include_path=/usr/share/php", "@worker_log.php"))
Program("rust_interner", "rustc", compiled("interner.rs", "rustc", "-O", "@in", "-o", "@out"))
Program("polyml", "polyml", script("poly", "--gcthreads", "1", "--script", "@versions.sml"))
Program("zsh", "zsh", script("zsh", "-f", "@completions.zsh"))

FOURTH_LOOK = set(PROGRAMS) - FOURTH_LOOK
