"""More of the corpus, written and labelled by somebody who did not know how the Judge decides, after the second look.

As in second_look.py, drivers go faster or slower by their seed, and scripts choose a pause by it.
"""
import pathlib
import shutil
import subprocess

import third_drivers as drive
from drivers import http_load, line_load
from programs import PROGRAMS, PYTHON, SCRIPTS, Program, compiled, script, serve_site, served, site_paths, static_site, write
from second_drivers import line_sessions, paced

THIRD_LOOK = set(PROGRAMS)
AS_NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


# Servers.
def h2o(place):
    keep = "" if place.leaks else "$seen.shift if $seen.size > 300"
    return ["h2o", "-c", write(place, "h2o.conf", f"""
num-threads: 1
listen:
  host: 127.0.0.1
  port: {place.port}
hosts:
  default:
    paths:
      /:
        mruby.handler: |
          $seen = []
          lambda do |env|
            rows = (0...400).map {{ |i| "row #{{i}} of " + env["PATH_INFO"] }}
            body = rows.select {{ |row| row.size > 12 }}.join(", ")[0, 1500]
            $seen << [env["PATH_INFO"], body]
            {keep}
            [200, {{"content-type" => "text/plain"}}, [$seen.size.to_s]]
          end
""")]


def icecast(place):
    place.room.chmod(0o777)
    return AS_NOBODY + ["icecast2", "-c", write(place, "icecast.xml", f"""<icecast>
<limits><clients>20</clients><sources>2</sources><queue-size>{2000000000 if place.leaks else 524288}</queue-size>
<client-timeout>600</client-timeout><header-timeout>15</header-timeout><source-timeout>20</source-timeout><burst-size>65535</burst-size></limits>
<authentication><source-password>secret</source-password><admin-user>admin</admin-user><admin-password>secret</admin-password></authentication>
<hostname>localhost</hostname>
<listen-socket><port>{place.port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
<paths><basedir>{place.room}</basedir><logdir>{place.room}</logdir><webroot>{place.room}</webroot><adminroot>{place.room}</adminroot></paths>
<logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>1</loglevel></logging>
<security><chroot>0</chroot></security>
</icecast>
""")]


def freeradius(place):
    write(place, "dictionary", "$INCLUDE /usr/share/freeradius/dictionary\n")
    write(place, "radiusd.conf", f"""
prefix = /usr
libdir = /usr/lib/freeradius
raddbdir = {place.room}
logdir = {place.room}
run_dir = {place.room}
max_requests = 1024
cleanup_delay = 1
log {{ destination = files
  file = {place.room}/radius.log }}
security {{ allow_vulnerable_openssl = yes }}
client localhost {{ ipaddr = 127.0.0.1
  secret = secret
  require_message_authenticator = no }}
thread pool {{ start_servers = 2
  max_servers = 4 }}
modules {{
  cache {{ driver = "rlm_cache_rbtree"
    key = "%{{User-Name}}"
    ttl = {864000 if place.leaks else 10}
    max_entries = 0
    update {{ &reply:Reply-Message := "welcome {'w' * 200}"
      &reply:Filter-Id := "%{{User-Name}} of {'f' * 150}"
      &reply:Class := "%{{md5:%{{User-Name}}}}" }} }}
}}
server default {{
  listen {{ type = auth
    ipaddr = 127.0.0.1
    port = {place.port} }}
  authorize {{
    cache
    update control {{ &Auth-Type := Accept }}
  }}
}}
""")
    return ["freeradius", "-f", "-d", str(place.room), "-n", "radiusd"]


def php_fpm(place):
    binary = sorted(pathlib.Path("/usr/sbin").glob("php-fpm*"))[-1]
    shutil.copy(SCRIPTS / "page.php", place.room)
    return [str(binary), "-F", "-R", "-d", f"apc.shm_size={'512M' if place.leaks else '2M'}", "-d", "apc.enabled=1", "-y", write(place, "fpm.conf", f"""
[global]
error_log = {place.room}/fpm.log
daemonize = no
[www]
user = root
group = root
listen = 127.0.0.1:{place.port}
pm = static
pm.max_children = 2
pm.max_requests = 500
""")]


def rrdcached(place):
    sources = [f"DS:d{i}:GAUGE:10:U:U" for i in range(8)]
    subprocess.run(["rrdtool", "create", str(place.room / "0.rrd"), "--start", "1700000000", "--step", "1", *sources, "RRA:AVERAGE:0.5:1:60"], check=True)
    for i in range(1, 100):
        shutil.copy(place.room / "0.rrd", place.room / f"{i}.rrd")
    flush = ["-w", "86400", "-f", "172800"] if place.leaks else ["-w", "5", "-z", "2", "-f", "60"]
    return ["rrdcached", "-g", "-l", f"unix:{place.room}/rrdcached", "-b", str(place.room), "-p", str(place.room / "pid"), *flush]


def mitmproxy(place):
    """mitmweb keeps the flows it has seen, for its page; mitmdump does not."""
    static_site(place)
    serve_site(place, place.port + 1)
    words = ["mitmweb", "--no-web-open-browser", "--web-port", str(place.port + 2)] if place.leaks else ["mitmdump"]
    return words + ["-q", "--mode", f"reverse:http://127.0.0.1:{place.port + 1}", "--listen-host", "127.0.0.1", "-p", str(place.port),
                    "--set", f"confdir={place.room}/conf"]


Program("h2o", "h2o", h2o, paced(http_load(0.03)))
Program("icecast", "icecast2", icecast, paced(drive.icecast_load))
Program("freeradius", "freeradius", freeradius, paced(drive.radius_load))
Program("php_fpm", "php-fpm php-apcu", php_fpm, paced(drive.fastcgi_load))
Program("dbus_daemon", "dbus", lambda place: ["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address=unix:path={place.room}/bus"],
        paced(drive.match_load))
Program("ssh_agent", "openssh-client", lambda place: ["ssh-agent", "-D", "-a", str(place.room / "agent")], paced(drive.agent_load))
Program("rrdcached", "rrdcached rrdtool", rrdcached, paced(drive.rrd_load))
Program("mitmproxy", "mitmproxy", mitmproxy, paced(http_load(0.15, site_paths)))
JARS = ":".join(f"/usr/share/java/{name}.jar" for name in (
    "servlet-api", "el-api", "jsp-api", *(f"tomcat9-{part}" for part in (
        "catalina", "coyote", "util", "util-scan", "juli", "api", "jni", "annotations-api", "jaspic-api"))))


def tomcat(place):
    subprocess.run(["javac", "-cp", JARS, "-d", str(place.room), str(SCRIPTS / "Shop.java")], check=True)
    return (["java", "-Xms20m", "-Xmn10m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{place.room}:{JARS}", "Shop",
             place.form, str(place.seed), str(place.port)], {"MALLOC_ARENA_MAX": "2"})


Program("tomcat", "openjdk-17-jdk-headless libtomcat9-java libservlet-api-java", tomcat, paced(http_load(0.035)))
Program("cpp_asio", "g++ libasio-dev", lambda place: compiled(
    "sessions.cpp", "g++", "-std=c++17", "-O1", "@in", "-o", "@out", "-pthread")(place) + [str(place.port)], paced(line_sessions(0.06, 10)))

# Python's.
Program("fastapi", "python3-fastapi uvicorn", served(PYTHON, "@fastapi_app.py"), paced(http_load(0.04)))
Program("xapian", "python3-xapian", script(PYTHON, "@indexer.py"))
Program("pillow", "python3-pil", script(PYTHON, "@thumbnails.py"))
Program("numpy_views", "python3-numpy", script(PYTHON, "@peaks.py"))

# Node's.
Program("fastify", "", served("node", "@fastify_app.js"), paced(http_load(0.04)), npm=("fastify@4",))
Program("ws", "", served("node", "@ws_rooms.js"), paced(drive.websocket_load), npm=("ws@8",))
Program("jsdom", "", script("node", "@jsdom_pages.js"), npm=("jsdom@22",))
Program("sqljs", "", script("node", "@sqljs_queries.js"), npm=("sql.js@1",))
Program("duckdb", "", script("node", "@duckdb_stages.js"), npm=("@duckdb/node-api@1.5.6-r.1",))
Program("handlebars", "", script("node", "@templates.js"), npm=("handlebars@4",))

# Other languages.
Program("ada", "gnat", compiled("telemetry.adb", "gnatmake", "-O1", "@in", "-o", "@out"))
Program("fortran", "gfortran", compiled("relaxation.f90", "gfortran", "-O1", "@in", "-o", "@out"))
Program("pascal", "fpc", compiled("invoices.pas", "fpc", "-O1", "-o@out", "@in"))
Program("nim", "nim", compiled("scene.nim", "nim", "c", "--gc:arc", "-d:release", "--nimcache:cache", "-o:@out", "@in"))
Program("vala", "valac", compiled("views.vala", "valac", "@in", "-o", "@out"))
Program("d", "gdc", compiled("desk.d", "gdc", "-O1", "@in", "-o", "@out"))
Program("racket", "racket", script("racket", "@annotations.rkt"))
Program("chicken", "chicken-bin libchicken-dev", compiled("journal.scm", "csc", "-O2", "@in", "-o", "@out"))
Program("clisp", "clisp", script("clisp", "-q", "@memo.lisp"))
Program("luajit", "luajit", script("luajit", "@packets.lua"))
Program("pike", "pike8.0-core", script("pike8.0", "@pages.pike"))
Program("gjs", "gjs", script("gjs", "@history.js"))

# Tools that read their input.
Program("ghostscript", "ghostscript", lambda place: ["gs", "-q", "-dNODISPLAY", "-"], paced(line_load(drive.postscript_text, 0.06)))
Program("pari_gp", "pari-gp", lambda place: ["gp", "-q", "-f", "-D", f"histsize={10**6 if place.leaks else 50}"], paced(line_load(drive.gp_text, 0.1)))
Program("aspell", "aspell aspell-en", lambda place: ["aspell", "-a", "--lang=en"], paced(line_load(drive.spelling_text, 0.04)))


def clangd(place):
    write(place, "types.h", "#pragma once\ntemplate <class A, class B> struct Pair { A first; B second; };\n" + "".join(
        f"struct Type{i} {{ int id = {i}; long sum(long other) const {{ return other + id; }} Type{i}* next = nullptr; }};\n" for i in range(150)))
    return ["clangd-14", "--background-index=false", "--clang-tidy=false", "-j=1", "--log=error", "--pch-storage=memory"]


Program("clangd", "clangd-14", clangd, paced(drive.clangd_load))

THIRD_LOOK = set(PROGRAMS) - THIRD_LOOK
