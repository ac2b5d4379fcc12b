/**
 * The example on three real nodes: an invitation to hundreds of calendars, while a node and a process
 * that handles are killed. Every guest has the event, and every answer was counted, once.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Uuid } from '../../schema/index.ts'
import { Calendar, Event } from '../../schema/examples/calendar.ts'
import { connect, rootKey, type Client } from '../../src/index.ts'
import {
  eventually,
  patienceMs,
  runProgram,
  startCluster,
  type TestCluster,
} from '../cluster/harness.ts'
import { countAccepted, handleAll, invite, openCalendars } from './invitations.ts'

/** More than a node looks for receivers at once. */
const guestCount = 500
const timeoutMs = 150_000
const program = fileURLToPath(new URL('./invitations.ts', import.meta.url))
const root = fileURLToPath(new URL('../..', import.meta.url))

let cluster: TestCluster
let client: Client
const children: ChildProcess[] = []
beforeAll(async () => {
  cluster = await startCluster()
  client = await connect({ endpoints: [...cluster.urls], timeoutMs: patienceMs })
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await client?.close()
  await cluster?.close()
})

/** A process that handles; resolves once it does. */
async function startHandler(): Promise<ChildProcess> {
  const urls = cluster.urls.flatMap((url) => ['--url', url])
  const child = spawn(process.execPath, ['--import', 'tsx', program, 'handle', ...urls], {
    cwd: root,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve())
    child.once('exit', () => reject(new Error('the handler ended')))
  })
  return child
}

test(
  'QUE-2, QUE-4: an invitation reaches hundreds of calendars once, though a node and a handler are killed',
  { timeout: timeoutMs + 60_000 },
  async () => {
    const db = await openCalendars(client)
    const first = await startHandler()
    await startHandler()
    const organiser = randomUUID()
    const guests = Array.from({ length: guestCount }, () => randomUUID())
    const event = await invite(db, organiser, guests)
    const some = (least: number) => async (): Promise<true | undefined> =>
      (await countAccepted(db, organiser, event)) >= least ? true : undefined
    await eventually('some have answered', some(50), timeoutMs)
    first.kill('SIGKILL')
    const [victim] = cluster.nodes
    await victim?.stop('SIGKILL')
    await eventually('more have answered', some(guestCount / 2), timeoutMs)
    await victim?.start()
    await eventually('all have answered', some(guestCount), timeoutMs)
    for (let at = 0; at < guests.length; at += 100) {
      await Promise.all(guests.slice(at, at + 100).map(expectInvited))
    }
    await eventually('nothing is left', nothingLeft, timeoutMs)
    expect(await countAccepted(db, organiser, event)).toBe(guestCount)
    // A node that was there all the time has seen each message come and go.
    const metrics = await (await fetch(`${cluster.nodes[1]?.url}/metrics`)).text()
    for (const topic of ['queue/Calendars.invitations', 'queue/Calendars.answers']) {
      for (const way of ['put', 'gone']) {
        const line = new RegExp(
          `^trilithon_worklist_rows_${way}_total\\{.*${topic}.*\\} (\\d+)$`,
          'm',
        )
        expect(line.exec(metrics)?.[1], `${way} ${topic}`).toBe(String(guestCount))
      }
    }

    async function expectInvited(calendar_id: Uuid): Promise<void> {
      const { value } = await db.read(
        rootKey(Calendar, { calendar_id }),
        'current',
        async (rows) => (await rows.scan(Event, { calendar_id })).items,
      )
      expect(value).toMatchObject([{ title: 'Solstice', event_id: event.event_id }])
    }
  },
)

async function nothingLeft(): Promise<true | undefined> {
  const queues = await client.queues.list()
  return queues.length === 0 ? true : undefined
}

test('the command line lists queues, shows messages and brings back dead letters', async () => {
  const db = await openCalendars(client)
  for (const child of children.splice(0)) child.kill('SIGKILL')
  const organiser = randomUUID()
  const guest = randomUUID()
  const event = await invite(db, organiser, [guest])
  const urls = cluster.urls.join(',')
  const queue = async (...args: readonly string[]): Promise<string> => {
    const result = await runProgram(['queue', ...args, '--url', urls])
    expect(result, result.stderr).toMatchObject({ code: 0 })
    return result.stdout
  }
  await eventually('the invitation is delivered', async () => {
    const shown = await queue('show', 'Calendars.invitations')
    return shown.includes(`Calendar (calendar_id "${guest}")`) ? true : undefined
  })
  // A node that was behind may list something of before for a moment.
  await eventually('nothing else is listed', async () => {
    const text = await queue('list')
    return /^QUEUE .*\nCalendars.invitations +1 +1 +.*0\n$/.test(text) ? true : undefined
  })
  const sums: readonly { readonly queue?: string }[] = JSON.parse(await queue('list', '--json'))
  const sum = sums.find((one) => one.queue === 'Calendars.invitations')
  expect(sum).toMatchObject({ waiting: { messages: 1, groups: 1 } })

  // An event of that key is there already: the handler cannot insert it.
  const [line] = (await queue('show', 'Calendars.invitations', '--json')).split('\n')
  expect(JSON.parse(line ?? '')).toMatchObject({ failures: 0, body: { ...event, organiser } })
  await db.transaction(rootKey(Calendar, { calendar_id: guest }), async (tx) => {
    await tx.insert(Event, { calendar_id: guest, ...event, title: 'Other' })
  })
  const failures: unknown[] = []
  const handlings = handleAll(db, (error) => failures.push(error), {
    ...{ attemptsMax: 2, retryMs: 10 },
  })
  const dead = await eventually('it is dead', async () => {
    const lines = (await queue('dead', 'list', 'Calendars.invitations', '--json')).trim()
    return lines === '' ? undefined : lines
  })
  const error: unknown = expect.stringContaining('exists already')
  expect(JSON.parse(dead)).toMatchObject({ failures: 2, error, body: { title: 'Solstice' } })
  expect(failures).toHaveLength(2)
  await db.transaction(rootKey(Calendar, { calendar_id: guest }), async (tx) => {
    await tx.delete(Event, { calendar_id: guest, ...event })
  })
  expect(await queue('redrive', 'Calendars.invitations')).toBe(
    '1 message put back into Calendars.invitations\n',
  )
  await eventually('the organiser has the answer', async () => {
    return (await countAccepted(db, organiser, event)) === 1 ? true : undefined
  })
  for (const handling of handlings) await handling.stop()
})
