/** An error of the program itself: told with an id, logged under it, counted by place. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { bugLog } from '../../src/node/bug-log.ts'
import { Bugs, type Bug } from '../../src/node/bugs.ts'
import { createBench, passMs } from '../cells/kit.ts'

function bench() {
  const { clockOf, random, world } = createBench()
  const told: Bug[] = []
  const bugs = new Bugs({ clock: clockOf('n1'), random, tell: (bug) => void told.push(bug) })
  return { bugs, told, rest: () => passMs(world, 1) }
}

test('OWN-1: the client gets an id, and the log has the details under it', async () => {
  const { bugs, told, rest } = bench()
  const error = new TypeError('inner words')
  const said = bugs.note('http', error)
  expect(told).toEqual([])
  await rest()
  const [{ id } = { id: '' }] = told
  expect(told).toEqual([{ id, place: 'http', error }])
  expect(id).toMatch(/^[0-9a-f]{8}$/)
  expect(said).toMatchObject({ code: 'internal', detail: {} })
  expect(said.message).toContain(`error ${id}`)
  expect(said.message).not.toContain('inner words')
})

test.each([[undefined], [null], ['text'], [Object.create(null)], [{ toString: () => 1 / 0 }]])(
  'the log turns any thrown value into an error: %#',
  async (thrown) => {
    const { bugs, told, rest } = bench()
    bugs.note('relay', thrown)
    await rest()
    expect(told[0]?.error).toBeInstanceOf(Error)
    const lines: string[] = []
    const logger = pino({ base: {} }, { write: (line: string) => void lines.push(line) })
    for (const bug of told) bugLog(logger)(bug)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 50, place: 'relay', id: told[0]?.id })
  },
)

test('they are counted by where they were met', () => {
  const { bugs } = bench()
  for (const place of ['request', 'http', 'request'] as const) bugs.note(place, new Error('odd'))
  const figures = bugs.figures().map(({ labels, value }) => [labels?.['place'], value])
  expect(Object.fromEntries(figures)).toMatchObject({ request: 2, http: 1, message: 0, buffer: 0 })
})
