# Sourced: the Debian packages we use, in one place, and how they get here.
# shellcheck shell=bash disable=SC2034

# The command alone; then what the tests and benchmarks need to be built besides.
COMMAND_PACKAGES=(g++ cmake ninja-build ccache python3
  libprotozero-dev libhwy-dev libcli11-dev nlohmann-json3-dev libfmt-dev libre2-dev)
# What ImageDecoder reads formats with; without one of them its format is an Error.
IMAGE_PACKAGES=(libjpeg-dev libopenjp2-7-dev libpng-dev libtiff-dev libwebp-dev)
BUILD_PACKAGES=("${COMMAND_PACKAGES[@]}" "${IMAGE_PACKAGES[@]}" libgtest-dev libgmock-dev)
MICRO_PACKAGES=(libbenchmark-dev libdnnl-dev ocl-icd-opencl-dev) # oneDNN's CMake file asks for OpenCL
TEST_PACKAGES=(libonnx-testdata python3-numpy python3-onnx python3-pil)
SKLEARN_PACKAGES=(python3-numpy python3-sklearn)
PYTHON_PACKAGES=(pybind11-dev python3-dev python3-pytest python3-numpy python3-onnx)
WHEEL_PACKAGES=(patchelf python3-venv)
TYPING_PACKAGES=(mypy)
DEB_PACKAGES=(dpkg-dev patchelf file git) # git: the date of the last commit
ROOT_PACKAGES=(debootstrap lintian) # a clean root to install into
DOCTOR_PACKAGES=(python3-torch python3-psutil)
MODEL_PACKAGES=(python3-numpy python3-torch python3-torchvision)
EXAMPLE_PACKAGES=(python3-numpy python3-torch python3-sklearn)
BROWSER_PACKAGES=(chromium)
# tests/corpus: real programs whose memory is watched; those of the quick stage, then all.
FEW_CORPUS_PACKAGES=(gawk perl sqlite3 lua5.4 python3-flask gunicorn)
CORPUS_PACKAGES=("${FEW_CORPUS_PACKAGES[@]}" redis-server memcached nginx-light libnginx-mod-http-lua apache2
  libapache2-mod-perl2 haproxy lighttpd varnish squid dnsmasq-base mosquitto beanstalkd rsyslog postgresql
  uwsgi-core uwsgi-plugin-python3 python3-tornado python3-django python3-matplotlib python3-pandas pypy3
  libjemalloc2 libtcmalloc-minimal4 ruby php-cli tcl guile-3.0 ocaml-nox ghc golang-go mono-mcs mono-runtime
  erlang-base sbcl swi-prolog-nox emacs-nox vim r-base-core octave openjdk-17-jdk-headless jq git tmux ffmpeg
  imagemagick gcc make rsync xz-utils chromium ruby-webrick python3-aiohttp tinyproxy socat
  mariadb-server unbound bind9 prosody nats-server prometheus aria2 graphite-carbon xvfb python3-xlib weechat-headless
  weechat-plugins gstreamer1.0-tools gstreamer1.0-plugins-base puma ruby-sinatra python3-sqlalchemy python3-twisted
  python3-cherrypy3 python3-aiosmtpd python3-bs4 python3-lxml python3-zmq libh2-java clojure groovy rustc elixir
  libmojolicious-perl neovim m4 gdb gnuplot-nox
  h2o icecast2 freeradius php-fpm php-apcu dbus openssh-client rrdcached rrdtool mitmproxy libtomcat9-java
  libservlet-api-java g++ libasio-dev python3-fastapi uvicorn python3-xapian python3-pil python3-numpy
  gnat gfortran fpc nim valac gdc racket chicken-bin libchicken-dev clisp luajit pike8.0-core gjs
  ghostscript pari-gp aspell aspell-en clangd-14
  stunnel4 openssl syslog-ng-core pmacct tarantool xterm golang-github-patrickmn-go-cache-dev libprotobuf-dev
  python3-sympy python3-xlsxwriter libxml-twig-perl
  python3-sklearn python3-waitress python3-bottle python3-websockets python3-ipython libnetty-java libzookeeper-java
  starman prometheus-pushgateway gearman-job-server libevent-dev ruby-activerecord ruby-sqlite3 php-monolog polyml zsh
  python3-torch python3-pyqt5 python3-gevent python3-plyvel python3-celery librhino-java ruby-nokogiri php-twig
  libdbd-sqlite3-perl libpango1.0-dev lua5.1 lua-copas ksh influxdb rabbitmq-server znc libreoffice-calc-nogui
  python3-uno unicorn ruby-rack
  capnproto libcapnp-dev cargo librust-crossbeam-epoch-dev golang-github-prometheus-client-golang-dev libmicrohttpd-dev libguava-java
  libhsqldb-java python3-marshmallow coturn knot dunst python3-jeepney mpv)
# Another machine's compiler and emulator, and the arm64 packages of its root (tools/aarch64_root.sh): every library of ours.
AARCH64_PACKAGES=(g++-aarch64-linux-gnu qemu-user)
AARCH64_ROOT_PACKAGES=(libc6-dev libstdc++-12-dev)
for package in "${BUILD_PACKAGES[@]}"; do
  if [[ $package == *-dev ]]; then AARCH64_ROOT_PACKAGES+=("$package"); fi
done
GUEST_PACKAGES=(qemu-system-x86 systemd)
DOCS_PACKAGES=(mkdocs)
INSTALL_PACKAGES=(pkgconf)
FUZZ_PACKAGES=(clang-14 libclang-rt-14-dev)
FORMAT_PACKAGES=(clang-format-14)
TIDY_PACKAGES=(clang-tidy-14 clang-14)

# need PACKAGE...: installs those that are missing; fails with a message if that is not possible.
need() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 --no-remove)
  if ((EUID != 0)); then
    command -v sudo >/dev/null || {
      echo "error: missing Debian packages: ${missing[*]} (neither root nor sudo to install them)" >&2
      return 1
    }
    apt=(sudo "${apt[@]}")
  fi
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # A fresh machine has no package lists: fetch them only if the first attempt fails.
  "${apt[@]}" install --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && return 0
  if "${apt[@]}" update >/dev/null && "${apt[@]}" install --no-install-recommends "${missing[@]}" >/dev/null; then
    return 0
  fi
  echo "error: could not install ${missing[*]}" >&2
  return 1
}

# need_each PACKAGE...: installs what can be installed of them, and says what cannot. Some exclude each other: luajit's
# library and the one that nginx's module for Lua needs.
need_each() {
  local package
  need "$@" || for package in "$@"; do need "$package" || true; done
}

# Node may come from elsewhere than Debian.
need_node() {
  { command -v node && command -v npm; } >/dev/null || need nodejs npm
}
