#!/usr/bin/python3
"""The page of `plimsoll watch --html` in headless Chromium: it draws, zooms, shows gaps, and runs no stranger's script.

PLIMSOLL names the command (build/plimsoll); PLIMSOLL_SCREENSHOTS a directory for screenshots to look at. The last line:
N passed, M failed, K skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import counted
from test_watch import HOSTILE, LEAK, PLIMSOLL, recording

# How many different colours a canvas shows, and how much of it is painted.
INK = """(() => [...document.querySelectorAll('canvas')].map(canvas => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set(); let painted = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] < 128) continue;
    ++painted; colours.add(pixels[i] >> 4 << 8 | pixels[i + 1] >> 4 << 4 | pixels[i + 2] >> 4);
  }
  return [colours.size, painted / (pixels.length / 4)];
}))()"""
RANGES = "plimsollWatch.charts.map(chart => [chart.scales.x.min, chart.scales.x.max, chart.scales.y.min])"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("chromium"):
            raise unittest.SkipTest("no chromium in PATH")
        from chromium import Chromium
        cls.browser = Chromium()
        cls.addClassCleanup(cls.browser.close)
        cls.room = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.room)

    def page(self, name="service", scheme="light", verdict="leak", **options):
        record, page = self.room / "r.jsonl", self.room / "w.html"
        recording(record, name, verdict, **options)
        done = subprocess.run([PLIMSOLL, "watch", "--replay", record, "--html", page], capture_output=True, text=True)
        self.assertEqual(done.returncode, LEAK, done.stderr)
        self.browser.scheme(scheme)
        self.browser.open(page)
        self.assertEqual(self.browser.complaints, [])
        return page

    def shot(self, name):
        if "PLIMSOLL_SCREENSHOTS" in os.environ:
            self.browser.screenshot(os.path.join(os.environ["PLIMSOLL_SCREENSHOTS"], f"{name}.png"))

    def test_draws_both_views_and_fetches_nothing(self):
        page = self.page()
        self.assertEqual(self.browser.requests, [f"file://{page}"])
        ink = self.browser.evaluate(INK)
        self.assertEqual(len(ink), 2)
        for colours, painted in ink:
            self.assertGreater(colours, 4)
            self.assertGreater(painted, 0.2)
        self.assertEqual([y for _, _, y in self.browser.evaluate(RANGES)], [0, 0])
        self.assertIn("leak: live heap", self.browser.evaluate("document.querySelector('#verdict').textContent"))
        self.shot("light")

    def test_dark_scheme(self):
        self.page()
        light = self.browser.evaluate("getComputedStyle(document.body).backgroundColor")
        self.page(scheme="dark")
        dark = self.browser.evaluate("getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(light, dark)
        self.shot("dark")
        # It follows when the reader changes over.
        pixel = "plimsollWatch.charts[0].ctx.canvas.toDataURL()"
        before = self.browser.evaluate(pixel)
        self.browser.scheme("light")
        self.browser.settle()
        self.assertNotEqual(self.browser.evaluate(pixel), before)

    def test_zoom_moves_both_charts_and_comes_back(self):
        self.page()
        whole = self.browser.evaluate(RANGES)
        left, top, width, height = self.browser.evaluate(
            "(() => { const r = document.querySelector('.u-over').getBoundingClientRect();"
            " return [r.left, r.top, r.width, r.height]; })()")
        self.browser.drag(left + width * 0.25, left + width * 0.5, top + height / 2)
        zoomed = self.browser.evaluate(RANGES)
        self.shot("zoomed")
        for low, high, _ in zoomed:
            self.assertAlmostEqual(low, 15, delta=1)
            self.assertAlmostEqual(high, 30, delta=1)
        self.assertFalse(self.browser.evaluate("document.getElementById('reset').disabled"))
        self.browser.evaluate("document.getElementById('reset').click()")
        self.browser.settle()
        self.assertEqual(self.browser.evaluate(RANGES), whole)
        self.assertTrue(self.browser.evaluate("document.getElementById('reset').disabled"))

    def test_gap_is_visible(self):
        # The heap's area is interrupted: in the middle of the gap, just above the axis, there is none of its colour.
        column = """(seconds => { const chart = plimsollWatch.charts[0];
          const x = Math.round(chart.valToPos(seconds, 'x', true)), y = Math.round(chart.valToPos(8, 'y', true));
          let solid = 0;
          for (let d = 0; d < 16; ++d) {
            const [r, g, b, a] = chart.ctx.getImageData(x, y + d - 8, 1, 1).data;
            solid += r === 0x4e && g === 0x79 && b === 0xa7 && a === 255;
          }
          return solid; })"""
        self.page()
        self.assertEqual(self.browser.evaluate(column + "(32.5)"), 0)
        self.assertEqual(self.browser.evaluate(column + "(20.5)"), 16)
        self.page(gap=False)
        self.assertEqual(self.browser.evaluate(column + "(32.5)"), 16)

    def test_hiding_a_part_takes_it_out_of_the_stack(self):
        self.page()
        top = "Math.max(...plimsollWatch.charts[0].data.slice(1).flat().filter(v => v !== null))"
        before = self.browser.evaluate(top)
        self.browser.evaluate("[...document.querySelectorAll('#process .u-series')].find("
                              "row => row.textContent.startsWith('shared file')).querySelector('th').click()")
        self.browser.settle()
        self.assertAlmostEqual(before - self.browser.evaluate(top), 5, delta=0.01)

    def test_hostile_names(self):
        self.page(HOSTILE)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.evaluate("document.scripts.length"), 3)
        self.assertIn("onerror=alert(2)", self.browser.evaluate("document.body.innerText"))
        self.shot("hostile")

    def test_what_grows_is_marked_and_its_fit_is_drawn(self):
        self.page(verdict=None)  # judged by the replay, with its curve
        self.shot("growth")
        self.assertEqual(self.browser.evaluate("document.getElementById('growth-title').textContent"), "What grows: heap")
        legend = self.browser.evaluate("[...document.querySelectorAll('#process .u-label')].map(one => one.textContent)")
        self.assertEqual([label for label in legend if "grows" in label], ["heap ▲ grows"])
        # The dashed line and the area around it have the colour of a leak, at both ends of the curve.
        reds = """(seconds => { const chart = plimsollWatch.charts[2];
          const x = Math.round(chart.valToPos(seconds, 'x', true));
          const {data} = chart.ctx.getImageData(x - 8, 0, 16, chart.ctx.canvas.height);
          let red = 0;
          for (let i = 0; i < data.length; i += 4) red += data[i] > data[i + 2] + 40 && data[i + 3] > 30;
          return red; })"""
        for seconds in (10, 55):
            self.assertGreater(self.browser.evaluate(reds + f"({seconds})"), 8)

    def test_narrow_window_shows_whole_tables(self):
        self.browser.resize(390, 1600)
        self.addCleanup(self.browser.resize, 1100, 1400)
        self.page("b" * 120, verdict=None)
        self.shot("narrow_growth")
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 390)
        hidden = self.browser.evaluate(
            "[...document.querySelectorAll('.wide, .wide td')].filter(one => one.scrollWidth > one.clientWidth + 1 ||"
            " one.getBoundingClientRect().right > 390).length")
        self.assertEqual(hidden, 0)

    def test_narrow_window_does_not_overflow(self):
        self.browser.resize(390, 800)
        self.addCleanup(self.browser.resize, 1100, 1400)
        self.page("a" * 200)
        self.shot("narrow")
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    sys.exit(counted.main())
