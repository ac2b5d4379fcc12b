/** The lines that strangers cause in the log. */
import { expect, test } from 'vitest'
import { linesMax, sparingLog, spanMs } from '../../src/node/sparing-log.ts'

interface Line {
  readonly message: string
  readonly detail: { readonly [field: string]: unknown }
}

function setUp(): {
  readonly lines: Line[]
  readonly log: ReturnType<typeof sparingLog>
  pass(): void
} {
  const lines: Line[] = []
  let timers: (() => void)[] = []
  const clock = {
    setTimer: (delayMs: number, run: () => void): { cancel(): void } => {
      expect(delayMs).toBe(spanMs)
      timers.push(run)
      return { cancel: () => undefined }
    },
  }
  const log = sparingLog(clock, new Set(['b']), (message, detail) =>
    lines.push({ message, detail }),
  )
  const pass = (): void => {
    const due = timers
    timers = []
    for (const run of due) run()
  }
  return { lines, log, pass }
}

test('DOOR-5: the log has a few of a stranger’s repeated lines, then the count of the rest', () => {
  const { lines, log, pass } = setUp()
  for (let i = 0; i < linesMax + 137; i++) log('link refused', { i })
  log('link broken', {})
  expect(lines.map(({ message }) => message)).toEqual([
    ...Array.from({ length: linesMax }, () => 'link refused'),
    'link broken',
  ])
  pass()
  expect(lines.slice(linesMax + 1)).toEqual([
    { message: 'link refused: more of these', detail: { untold: 137 } },
  ])
  log('link refused', { again: true })
  expect(lines.at(-1)).toEqual({ message: 'link refused', detail: { again: true } })
  pass()
  expect(lines).toHaveLength(linesMax + 3)
})

test('DOOR-5: nodes of the cluster have lines of their own, and names that strangers invent do not', () => {
  const { lines, log } = setUp()
  for (let i = 0; i < 5 * linesMax; i++) log('link broken', { node: `invented ${i}` })
  expect(lines).toHaveLength(linesMax)
  log('link broken', { node: 'b' })
  expect(lines.at(-1)?.detail).toEqual({ node: 'b' })
})
