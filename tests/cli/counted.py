"""Runs tests as the stages expect it: skips with their reasons, and as the last line N passed, M failed, K skipped."""
import sys
import unittest


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    """The tests of the program's own module, or those named on its command line; returns the exit code."""
    here, names = sys.modules["__main__"], sys.argv[1:]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names, here) if names else loader.loadTestsFromModule(here)
    result = unittest.TextTestRunner(resultclass=Result, stream=sys.stdout, verbosity=1).run(suite)
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    failed = len(result.failures) + len(result.errors)
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped", flush=True)
    return 1 if failed else 0
