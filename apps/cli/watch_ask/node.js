// Handed to Node by `plimsoll watch -- COMMAND` (NODE_OPTIONS=--require): tells, in a file beside this one that is named by
// the process, what V8's heap held after its last full collection. Whatever does not work here is left alone, quietly.
'use strict';
(function tell() {
  var EVERY_MS = 1000;
  var BETWEEN_COLLECTIONS_MS = 5000;
  var TIMES_A_COLLECTION = 110; // of its processor time, so long is waited after one: together they take less than 1 %
  var LARGEST_HEAP = 128 * 1024 * 1024; // of which a collection is asked for: it stops the program for about 1 ms per MB
  var MAY_ASK = parseInt(process.versions.node, 10) >= 16; // before, V8 ends a program whose flags change so
  try {
    delete require.cache[__filename];
    if (process.versions.electron || process.versions.bun || process.versions.deno) return;
    // A worker thread has a heap of its own, which is judged from outside: the main one tells how many there were.
    try { if (!require('worker_threads').isMainThread) return; } catch (error) { /* older than threads */ }
    var fs = require('fs'), v8 = require('v8'), vm = require('vm'), perf_hooks = require('perf_hooks');
    var open = fs.openSync, write = fs.writeSync, close = fs.closeSync;
    var statistics = v8.getHeapStatistics, spaces = v8.getHeapSpaceStatistics, setFlags = v8.setFlagsFromString;
    var hrtime = process.hrtime, memoryUsage = process.memoryUsage, cpuUsage = process.cpuUsage, evaluate = vm.runInNewContext;
    var path = __dirname + '/' + process.pid;
    var stat = fs.readFileSync('/proc/self/stat', 'latin1');
    var started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) { return; }
  var collect = typeof gc === 'function' ? gc : null, observer = null, next = 2 * EVERY_MS, turn = 0;
  var collections = 0, live = 0, asked = 0, askedMs = 0, threads = MAY_ASK ? 0 : 1; // older ones do not tell: there may be

  function now() {
    var time = hrtime();
    return time[0] * 1e3 + time[1] / 1e6;
  }
  var begin = now();

  function external(heap) {
    return heap.external_memory === undefined ? memoryUsage().external : heap.external_memory;
  }
  function ask() {
    var before = now(), used = cpuUsage();
    if (!collect) {
      setFlags('--expose-gc');
      try { collect = evaluate('gc'); } finally { setFlags('--no-expose-gc'); } // no other context shall find it
    }
    collect();
    used = cpuUsage(used); // of a starved process the clock would say much more
    var took = (used.user + used.system) / 1e3, heap = statistics();
    live = heap.used_heap_size + external(heap);
    ++collections;
    ++asked;
    askedMs += took;
    next = before - begin + Math.max(BETWEEN_COLLECTIONS_MS, TIMES_A_COLLECTION * took);
  }
  // A heap too large to ask of collects by itself: what is not new then is what was left.
  function listen() {
    var constants = perf_hooks.constants;
    observer = new perf_hooks.PerformanceObserver(function (list) {
      try {
        list.getEntries().forEach(function (entry) {
          var kind = entry.detail ? entry.detail.kind : entry.kind;
          if (kind !== constants.NODE_PERFORMANCE_GC_MAJOR) return;
          live = external(statistics());
          spaces().forEach(function (space) {
            if (space.space_name.indexOf('new_') !== 0) live += space.space_used_size;
          });
          ++collections;
        });
      } catch (error) { /* the next one may do */ }
    });
    observer.observe({ entryTypes: ['gc'] });
  }
  function look() {
    var heap = statistics();
    if (!MAY_ASK || heap.used_heap_size > LARGEST_HEAP) {
      if (!observer) listen();
    } else if (now() - begin >= next) {
      ask();
      heap = statistics();
    }
    if (collections === 0) return;
    // The same number at both ends: a reader that meets the writer sees two.
    turn = (turn + 1) % 1e9;
    var line = ['plimsoll-heap', 1, turn, started, collections, live, heap.total_physical_size + external(heap), asked,
      Math.round(1000 * askedMs), threads, turn].join(' ');
    while (line.length < 191) line += ' ';
    var file = open(path, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW, 420);
    try { write(file, line + '\n', 0, 'latin1'); } finally { close(file); }
  }
  try {
    process.on('worker', function () { ++threads; });
    var timer = setInterval(function () {
      try { look(); } catch (error) { clearInterval(timer); }
    }, EVERY_MS);
    if (timer.unref) timer.unref();
  } catch (error) { /* then nothing is told */ }
})();
