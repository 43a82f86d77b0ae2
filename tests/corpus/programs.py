"""The corpus: real programs from Debian and npm, each as it should be and, where there is a way that people meet, leaking.

`prepare(place)` writes what the program needs into place.room and returns its command, and perhaps its environment.
Labels and halves stand in programs.csv, which was committed before anything was judged.
"""
import os
import pathlib
import shutil
import subprocess

from drivers import (batch_text, beanstalkd_load, dns_load, fast_import_text, http_load, json_line, line_load, log_line,
                     memcached_load, mosquitto_load, postgres_load, redis_load, session_line, sql_text, syslog_load)

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
CACHE = pathlib.Path(os.environ.get("PLIMSOLL_CACHE", pathlib.Path.home() / ".cache/plimsoll")) / "corpus"
PYTHON = "/usr/bin/python3"
PROGRAMS = {}


class Program:
    def __init__(self, name, packages, prepare, drive=None, leaks=True, npm=()):
        self.name, self.packages, self.prepare, self.drive, self.npm = name, packages.split(), prepare, drive, npm
        self.forms = ["steady", "leaks"] if leaks else ["steady"]
        PROGRAMS[name] = self


def script(*words):
    """A command with FORM and SEED at its end."""
    return lambda place: [str(SCRIPTS / word[1:]) if word.startswith("@") else word for word in words] + [place.form, str(place.seed)]


def served(*words):
    """A command with the form, the seed and the port."""
    return lambda place: script(*words)(place) + [str(place.port)]


def in_room(*words):
    return lambda place: script(*words)(place)[:-2] + [str(place.room)]


def write(place, name, text):
    path = place.room / name
    path.write_text(text)
    return str(path)


def compiled(name, *words):
    """Compiles a script once into the cache; the program's path."""
    def prepare(place):
        CACHE.mkdir(parents=True, exist_ok=True)
        source = SCRIPTS / name
        output = CACHE / (source.stem + "-" + source.suffix[1:] + f"-{source.stat().st_mtime_ns}")
        if not output.exists():
            room = place.room / "compile"
            room.mkdir()
            shutil.copy(source, room)
            subprocess.run([word.replace("@in", source.name).replace("@out", "program") for word in words], cwd=room, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, GO111MODULE="off"))
            os.replace(room / "program", output)
        return [str(output), place.form, str(place.seed)]
    return prepare


def static_site(place):
    site = place.room / "site"
    site.mkdir()
    for i in range(20):
        (site / str(i)).write_text("words " * (100 + 300 * i))
    place.room.chmod(0o755)
    return site


def serve_site(place, port):
    """A server behind the one that is watched; the harness ends it."""
    place.helper = subprocess.Popen([PYTHON, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(place.room / "site"), str(port)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def site_paths(place):
    return f"/{place.random.randrange(20)}"


# Servers.
def redis(place):
    limit = "0" if place.leaks else "12mb"
    return ["redis-server", "--port", str(place.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(place.room),
            "--maxmemory", limit, "--maxmemory-policy", "allkeys-lru"]


def memcached(place):
    return ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(place.port), "-m", "2000" if place.leaks else "8"]


def nginx(place):
    static_site(place)
    keep = "seen = seen or {}; seen[#seen + 1] = ngx.var.uri .. string.rep('x', 900)" if place.leaks else "local one = string.rep('x', 900)"
    return ["nginx", "-p", str(place.room), "-e", "error.log", "-c", write(place, "nginx.conf", f"""
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off; worker_processes 2; pid {place.room}/pid; user root;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  init_by_lua_block {{ seen = {{}} }}
  server {{ listen 127.0.0.1:{place.port}; root site;
    location /lua {{ content_by_lua_block {{ {keep} ngx.say("done") }} }} }} }}
""")]


def apache(place):
    static_site(place)
    keep = "push @Keep::seen, $r->uri . 'x' x 1500;" if place.leaks else "my @seen = ($r->uri . 'x' x 1500);"
    write(place, "Keep.pm", "package Keep; use Apache2::RequestRec (); use Apache2::RequestIO (); our @seen;\n"
          f"sub handler {{ my $r = shift; {keep} $r->print('done'); return 0; }} 1;\n")
    replaced = 0 if place.leaks else 150  # requests after which a worker is replaced
    return ["apache2", "-D", "FOREGROUND", "-f", write(place, "apache.conf", f"""
ServerRoot {place.room}
ServerName localhost
PidFile pid
Listen 127.0.0.1:{place.port}
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule perl_module /usr/lib/apache2/modules/mod_perl.so
StartServers 3
MinSpareServers 3
MaxSpareServers 3
MaxRequestWorkers 4
MaxConnectionsPerChild {replaced}
DocumentRoot {place.room}/site
ErrorLog error.log
PerlRequire {place.room}/Keep.pm
<Location /perl>
  SetHandler modperl
  PerlResponseHandler Keep
</Location>
""")]


def haproxy(place):
    keep = "seen[#seen + 1] = body" if place.leaks else "local one = body"
    write(place, "keep.lua", "seen = {}\ncore.register_service('keep', 'http', function(applet)\n"
          f"  local body = string.rep('x', 800) .. #seen\n  {keep}\n  applet:set_status(200)\n"
          "  applet:add_header('content-length', tostring(#body))\n  applet:start_response()\n  applet:send(body)\nend)\n")
    return ["haproxy", "-f", write(place, "haproxy.conf", f"""
global
  lua-load {place.room}/keep.lua
  nbthread 1
  maxconn 64
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend all
  bind 127.0.0.1:{place.port}
  http-request use-service lua.keep
""")]


def lighttpd(place):
    static_site(place)
    return ["lighttpd", "-D", "-f", write(place, "lighttpd.conf", f"""
server.document-root = "{place.room}/site"
server.port = {place.port}
server.bind = "127.0.0.1"
""")]


def varnish(place):
    static_site(place)
    origin = place.port + 1
    serve_site(place, origin)
    vcl = write(place, "default.vcl", f"""vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{origin}"; }}
sub vcl_hash {{ hash_data(req.http.x-key); }}
sub vcl_backend_response {{ set beresp.ttl = 1h; }}
""")
    storage = "malloc,2G" if place.leaks else "malloc,3M"
    return ["varnishd", "-F", "-j", "none", "-n", str(place.room / "varnish"), "-a", f"127.0.0.1:{place.port}", "-f", vcl, "-s", storage,
            "-T", "none", "-p", "thread_pool_min=5", "-p", "thread_pools=1"]


def squid(place):
    static_site(place)
    origin = place.port + 1
    serve_site(place, origin)
    return ["squid", "-N", "-n", f"corpus{place.port}", "-f", write(place, "squid.conf", f"""
http_port 127.0.0.1:{place.port} accel defaultsite=localhost
cache_peer 127.0.0.1 parent {origin} 0 no-query originserver
http_access allow all
cache_mem 2 MB
pid_filename none
memory_cache_shared off
access_log none
cache_effective_user proxy
coredump_dir {place.room}
shutdown_lifetime 1 seconds
""")]


def dnsmasq(place):
    return ["dnsmasq", "-k", "-u", "root", "-p", str(place.port), "--listen-address=127.0.0.1", "--bind-interfaces", "-R", "-h",
            "--address=/test/127.0.0.9", "--pid-file", "--conf-file=/dev/null"]


def mosquitto(place):
    return ["mosquitto", "-c", write(place, "mosquitto.conf",
                                     f"listener {place.port} 127.0.0.1\nallow_anonymous true\nuser root\nlog_dest none\n")]


def rsyslog(place):
    down = f'action(type="omfwd" target="127.0.0.1" port="{place.port + 1}" protocol="tcp" action.resumeRetryCount="-1" ' \
           'queue.type="LinkedList" queue.size="10000000" queue.dequeueBatchSize="16")'
    up = f'action(type="omfile" file="{place.room}/log")'
    return ["rsyslogd", "-n", "-i", str(place.room / "pid"), "-f", write(place, "rsyslog.conf", f"""
global(workDirectory="{place.room}")
module(load="imtcp")
input(type="imtcp" port="{place.port}" address="127.0.0.1")
{down if place.leaks else up}
""")]


def postgres(place):
    shutil.chown(place.room, "postgres")
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    binaries = sorted(pathlib.Path("/usr/lib/postgresql").iterdir())[-1] / "bin"
    subprocess.run(as_user + [str(binaries / "initdb"), "-D", str(place.room / "data"), "-A", "trust", "--no-sync"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return as_user + [str(binaries / "postgres"), "-D", str(place.room / "data"), "-p", str(place.port), "-k", str(place.room),
                      "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=8MB", "-c", "fsync=off",
                      "-c", "dynamic_shared_memory_type=mmap"]  # goes with its folder when it is killed


Program("redis", "redis-server", redis, redis_load)
Program("memcached", "memcached", memcached, memcached_load)
Program("beanstalkd", "beanstalkd", lambda place: ["beanstalkd", "-l", "127.0.0.1", "-p", str(place.port)], beanstalkd_load)
Program("nginx", "nginx-light libnginx-mod-http-lua", nginx,
        http_load(0.02, lambda place: site_paths(place) if place.random.random() < 0.3 else f"/lua/{place.random.random()}"))
Program("apache", "apache2 libapache2-mod-perl2", apache,
        http_load(0.02, lambda place: site_paths(place) if place.random.random() < 0.3 else f"/perl/{place.random.random()}"))
Program("haproxy", "haproxy", haproxy, http_load(0.02))
Program("lighttpd", "lighttpd", lighttpd, http_load(0.03, site_paths), leaks=False)
Program("varnish", "varnish", varnish,
        http_load(0.05, lambda place: "/3", headers=lambda place: {"x-key": str(place.random.randrange(10**9))}))
Program("squid", "squid", squid, http_load(0.05, lambda place: site_paths(place) + f"?{place.random.randrange(3000)}"), leaks=False)
Program("dnsmasq", "dnsmasq-base", dnsmasq, dns_load, leaks=False)
Program("mosquitto", "mosquitto", mosquitto, mosquitto_load)
Program("rsyslog", "rsyslog", rsyslog, syslog_load)
Program("postgres", "postgresql", postgres, postgres_load)

# Python's.
Program("gunicorn", "gunicorn", lambda place: (
    [PYTHON, "-m", "gunicorn", "--chdir", str(SCRIPTS), "-w", "4", "-b", f"127.0.0.1:{place.port}", "wsgi"] +
    ([] if place.leaks else ["--max-requests", "120", "--max-requests-jitter", "60"]), {"FORM": place.form}), http_load(0.03))
Program("uwsgi", "uwsgi-core uwsgi-plugin-python3", lambda place: (
    ["uwsgi", "--plugin", "python3", "--chdir", str(SCRIPTS), "--wsgi", "wsgi", "--http-socket", f"127.0.0.1:{place.port}",
     "--master", "--processes", "2", "--disable-logging"], {"FORM": place.form}), http_load(0.03))
Program("flask", "python3-flask", lambda place: [PYTHON, str(SCRIPTS / "flask_app.py"), place.form, str(place.port)], http_load(0.04))
Program("tornado", "python3-tornado", lambda place: [PYTHON, str(SCRIPTS / "tornado_app.py"), place.form, str(place.port)],
        http_load(0.03))
Program("django", "python3-django", script(PYTHON, "@django_loop.py"))
Program("matplotlib", "python3-matplotlib", script(PYTHON, "@figures.py"))
Program("pandas", "python3-pandas", script(PYTHON, "@frames.py"))
Program("python_tcmalloc", "libtcmalloc-minimal4", lambda place: (
    script(PYTHON, "@preload.py")(place),
    {"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4", "PYTHONMALLOC": "malloc"}))
Program("pypy", "pypy3", script("pypy3", "@pypy.py"))

# Node's.
Program("node_http", "", served("node", "@node_http.js"), http_load(0.02, keep=True))
Program("node_churn", "", script("node", "@node_churn.js"))
Program("express", "", served("node", "@express.js"), http_load(0.02, lambda place: "/"), npm=("express@4", "express-session@1"))
Program("lodash", "", script("node", "@lodash.js"), npm=("lodash@4", "lru-cache@10"))


def erlang(place):
    subprocess.run(["erlc", "-o", str(place.room), str(SCRIPTS / "erlang_mailbox.erl")], check=True)
    return ["erl", "-noshell", "-noinput", "-pa", str(place.room), "-s", "erlang_mailbox", "start", place.form, str(place.seed)]


# Other interpreters and runtimes.
Program("perl", "perl", script("perl", "@perl.pl"))
Program("ruby", "ruby", script("ruby", "@ruby.rb"))
Program("ruby_jemalloc", "ruby libjemalloc2", lambda place: (
    script("ruby", "@ruby.rb")(place), {"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}))
Program("php", "php-cli", script("php", "@php.php"))
Program("lua", "lua5.4", script("lua5.4", "@lua.lua"), line_load(session_line, 0.01))
Program("gawk", "gawk", lambda place: ["gawk", "-v", f"form={place.form}", "-f", str(SCRIPTS / "gawk.awk")],
        line_load(lambda place: "".join(log_line(place) for _ in range(6)), 0.03))
Program("bash", "bash", script("bash", "@bash.sh"))
Program("tcl", "tcl", script("tclsh", "@tcl.tcl"))
Program("guile", "guile-3.0", script("guile", "--no-auto-compile", "@guile.scm"))
Program("ocaml", "ocaml-nox", compiled("ocaml.ml", "ocamlopt", "unix.cmxa", "@in", "-o", "@out"))
Program("haskell", "ghc", compiled("haskell.hs", "ghc", "-O0", "@in", "-o", "@out"))
Program("go", "golang-go", compiled("go.go", "go", "build", "-o", "@out", "@in"))
Program("mono", "mono-mcs", lambda place: (["mono"] + compiled("mono.cs", "mcs", "-out:@out", "@in")(place),
                                           {"MONO_DISABLE_SHARED_AREA": "1"}))  # which stays in /dev/shm when it is killed
Program("erlang", "erlang-base", erlang)
Program("sbcl", "sbcl", script("sbcl", "--script", "@sbcl.lisp"))
Program("prolog", "swi-prolog-nox", lambda place: ["swipl", "-q", "-g", f"run({place.form}, {place.seed})", str(SCRIPTS / "prolog.pl")])
Program("emacs", "emacs-nox", script("emacs", "-Q", "--batch", "-l", "@emacs.el"))
Program("vim", "vim", lambda place: (["vim", "-u", "NONE", "-es", "-n", "-S", str(SCRIPTS / "vim.vim")],
                                     {"FORM": place.form, "SEED": str(place.seed)}))
Program("r", "r-base-core", script("Rscript", "--vanilla", "@statistics.R"))
Program("octave", "octave", script("octave-cli", "-q", "@signals.m"))
Program("java", "openjdk-17-jdk-headless", script("java", "-Xmx128m", "@Pools.java"))

# Tools.
Program("sqlite3", "sqlite3", lambda place: ["sqlite3", "-init", write(
    place, "init.sql", "create table log(id integer primary key, text);\n"), ":memory:"], line_load(sql_text, 0.02))
Program("jq", "jq", lambda place: ["jq", "-n", "--unbuffered", "[inputs] | length" if place.leaks else "inputs | .n | add"],
        line_load(lambda place: "".join(json_line(place) for _ in range(4)), 0.05))


def git(place):
    subprocess.run("git init -q . && echo text >file && git add file && git -c user.name=n -c user.email=e commit -q -m m", shell=True,
                   cwd=place.room, check=True)
    return ["git", "-C", str(place.room)] + (["fast-import", "--quiet"] if place.leaks else ["cat-file", "--batch"])


Program("git", "git", git, line_load(lambda place: fast_import_text(place) if place.leaks else batch_text(place), 0.01))
def wake_tmux(place, stop):
    """It reads its configuration when the first client comes."""
    while not stop.wait(2):
        if subprocess.run(["tmux", "-S", str(place.room / "socket"), "ls"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return


Program("tmux", "tmux", lambda place: ["tmux", "-D", "-S", str(place.room / "socket"), "-f", write(
    place, "tmux.conf", f"set -g history-limit {10**9 if place.leaks else 2000}\nnew-session -d '{SCRIPTS}/scroll.sh {place.seed}'\n")], wake_tmux)
Program("ffmpeg", "ffmpeg", lambda place: ["ffmpeg", "-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i",
                                           f"testsrc=size={48 + 16 * place.seed}x48:rate=10", "-vf", "reverse" if place.leaks else "hflip",
                                           "-f", "null", "-"])
Program("imagemagick", "imagemagick", in_room("@imagemagick.sh"), leaks=False)
Program("gcc_make", "gcc make", in_room("@gcc_make.sh"), leaks=False)
Program("archive", "rsync xz-utils", in_room("@archive.sh"), leaks=False)
Program("chromium", "chromium", lambda place: [
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={place.room}/profile",
    "--remote-debugging-port=0", "--disable-background-networking", "--disable-component-update", "--no-first-run",
    f"file://{SCRIPTS}/chromium.html" + ("#leaks" if place.leaks else "")])

# Written and labelled after the held half had been looked at, for the Judge as corrected then.
FRESH = set(PROGRAMS)


def ets_table(place):
    subprocess.run(["erlc", "-o", str(place.room), str(SCRIPTS / "ets_table.erl")], check=True)
    return ["erl", "-noshell", "-noinput", "-pa", str(place.room), "-s", "ets_table", "start", place.form, str(place.seed)]


def tinyproxy(place):
    static_site(place)
    serve_site(place, place.port + 1)
    return ["tinyproxy", "-d", "-c", write(place, "tinyproxy.conf", f"""
Port {place.port}
Listen 127.0.0.1
Timeout 10
MaxClients 20
ReversePath "/" "http://127.0.0.1:{place.port + 1}/"
ReverseOnly Yes
""")]


def socat(place):
    static_site(place)
    serve_site(place, place.port + 1)
    return ["socat", f"TCP-LISTEN:{place.port},bind=127.0.0.1,fork,reuseaddr", f"TCP:127.0.0.1:{place.port + 1}"]


Program("aiohttp", "python3-aiohttp", lambda place: [PYTHON, str(SCRIPTS / "aiohttp_app.py"), place.form, str(place.port)], http_load(0.03))
Program("webrick", "ruby ruby-webrick", served("ruby", "@webrick.rb"), http_load(0.03))
Program("python_pool", "", script(PYTHON, "@pool.py"))
Program("go_http", "golang-go", lambda place: compiled("go_http.go", "go", "build", "-o", "@out", "@in")(place) + [str(place.port)],
        http_load(0.02))
Program("java_cache", "openjdk-17-jdk-headless", script("java", "-Xmx256m", "@Cache.java"))
Program("erlang_ets", "erlang-base", ets_table)
Program("lua_coroutines", "lua5.4", script("lua5.4", "@coroutines.lua"), line_load(session_line, 0.015))
Program("asyncio", "", script(PYTHON, "@tasks.py"))
Program("node_timers", "", script("node", "@node_timers.js"))
Program("php_server", "php-cli", lambda place: ["php", "-S", f"127.0.0.1:{place.port}", str(SCRIPTS / "router.php")], http_load(0.04),
        leaks=False)
Program("tinyproxy", "tinyproxy", tinyproxy, http_load(0.04, site_paths), leaks=False)
Program("socat", "socat", socat, http_load(0.08, site_paths), leaks=False)
FRESH = set(PROGRAMS) - FRESH
