/**
 * Ends a run with one plain line, `N passed, N failed, N skipped`, for whatever reads the output. Before it, each
 * failure has a line of its own, `failed: FILE: TEST: MESSAGE`, so that the end of a long output tells all; a test that passed when it was tried again has
 * one that begins with `flaky`.
 */
import { relative } from 'node:path'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

const messageCharsMax = 1000

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

/** The beginning of each failure's message on one line, with the file and the test; flaky tests too. */
export function listFailures(
  modules: readonly TestModule[],
  unhandledErrors: readonly SerializedError[],
  root: string = process.cwd(),
): readonly string[] {
  const lines: string[] = []
  const add = (where: string, errors: readonly SerializedError[] = [], kind = 'failed'): void => {
    const message = (errors[0]?.message ?? 'it did not end').replaceAll(/\s*\n\s*/g, ' | ')
    lines.push(`${kind}: ${where}: ${message.slice(0, messageCharsMax)}`)
  }
  for (const module of modules) {
    const file = relative(root, module.moduleId)
    if (module.errors().length > 0) add(file, module.errors())
    for (const suite of module.children.allSuites()) {
      if (suite.errors().length > 0) add(`${file}: ${suite.fullName}`, suite.errors())
    }
    for (const test of module.children.allTests()) {
      const { state, errors } = test.result()
      const name = `${file}: ${test.fullName}`
      if (state === 'failed' || state === 'pending') add(name, errors)
      else if (test.diagnostic()?.flaky === true) add(name, errors, 'flaky')
    }
  }
  for (const error of unhandledErrors) add('outside any test', [error])
  return lines
}

export default class PlainLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    for (const line of listFailures(modules, unhandledErrors)) process.stdout.write(`${line}\n`)
    process.stdout.write(`${summarize(modules, unhandledErrors)}\n`)
  }
}
