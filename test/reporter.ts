/** Ends a run with one plain line, `N passed, N failed, N skipped`, for whatever reads the output. */
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** A file that cannot be loaded and an error outside any test count as failures. */
export function summarize(
  modules: readonly TestModule[],
  unhandledErrors: readonly SerializedError[],
): string {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 }
  for (const module of modules) {
    counts.failed += module.errors().length
    for (const test of module.children.allTests()) counts[test.result().state] += 1
    for (const suite of module.children.allSuites()) counts.failed += suite.errors().length
  }
  // A test that never ended proves nothing.
  const failed = counts.failed + counts.pending
  return `${counts.passed} passed, ${failed} failed, ${counts.skipped} skipped`
}

export default class PlainLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    process.stdout.write(`${summarize(modules, unhandledErrors)}\n`)
  }
}
