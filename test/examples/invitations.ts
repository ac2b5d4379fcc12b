/**
 * An invitation to many calendars: one transaction on the organiser's calendar writes the event and
 * sends an invitation to each guest's. A guest's calendar, in a transaction of its own, gets the event
 * and answers; the organiser's counts the answers. Each happens once, whatever ends or is killed.
 *
 *   node --import tsx test/examples/invitations.ts handle --url URL…            handles, until it is ended
 *   node --import tsx test/examples/invitations.ts invite --url URL… --guests N  invites, and waits for all
 */
import { parseArgs } from 'node:util'
import { randomUUID } from 'node:crypto'
import { defineSchema, type Uuid } from '../../schema/index.ts'
import { Calendar, Event } from '../../schema/examples/calendar.ts'
import {
  connect,
  queue,
  rootKey,
  type Client,
  type ConsumeOptions,
  type QueueHandling,
  type Tables,
} from '../../src/index.ts'

/** Bodies are JSON: times as microseconds. */
export interface Invitation {
  readonly event_id: Uuid
  readonly title: string
  readonly start: number
  readonly organiser: Uuid
}

export interface Answer {
  readonly event_id: Uuid
  readonly start: number
  readonly guest: Uuid
}

export const invitations = queue<Invitation>()('invitations', Calendar)
export const answers = queue<Answer>()('answers', Calendar)

/** The tables that invitations are about. */
const calendars = defineSchema('Calendars', [Calendar, Event])

type CalendarTables = Tables<typeof calendars.tables>

export async function openCalendars(client: Client): Promise<CalendarTables> {
  await client.applySchema(calendars)
  return await client.tables(calendars)
}

/** The handlers of a process that handles invitations and answers. */
export function handleAll(
  db: CalendarTables,
  onFailed: (error: unknown) => void = () => undefined,
  options: ConsumeOptions = {},
): readonly QueueHandling[] {
  const guests = db.consume(
    invitations,
    async (tx, messages) => {
      for (const { to, body } of messages) {
        const { event_id, title, start, organiser } = body
        await tx.insert(Event, { ...to, event_id, title, start, tag: ['invited'] })
        const answer = { event_id, start, guest: to.calendar_id }
        await tx.send(answers, { calendar_id: organiser }, answer)
      }
    },
    { ...options, onFailed },
  )
  const organisers = db.consume(
    answers,
    async (tx, messages) => {
      for (const { to, body } of messages) {
        const { event_id, start } = body
        const key = { ...to, start, event_id }
        const event = await tx.get(Event, key)
        await tx.update(Event, key, { extra: { accepted: acceptedOf(event) + 1 } })
      }
    },
    { ...options, onFailed },
  )
  return [guests, organisers]
}

/** One transaction, on the organiser's calendar. */
export async function invite(
  db: CalendarTables,
  organiser: Uuid,
  guests: readonly Uuid[],
): Promise<{ readonly event_id: Uuid; readonly start: number }> {
  const event_id = randomUUID()
  const start = 1_800_000_000_000_000
  await db.transaction(rootKey(Calendar, { calendar_id: organiser }), async (tx) => {
    await tx.insert(Event, { calendar_id: organiser, start, event_id, title: 'Solstice' })
    const body = { event_id, title: 'Solstice', start, organiser }
    for (const calendar_id of guests) await tx.send(invitations, { calendar_id }, body)
  })
  return { event_id, start }
}

/** How many answers the organiser's calendar has counted. */
export async function countAccepted(
  db: CalendarTables,
  calendar_id: Uuid,
  event: { readonly event_id: Uuid; readonly start: number },
): Promise<number> {
  const root = rootKey(Calendar, { calendar_id })
  const { value } = await db.read(root, 'current', (rows) =>
    rows.get(Event, { calendar_id, ...event }),
  )
  return acceptedOf(value)
}

function acceptedOf(event: { readonly extra?: unknown } | undefined): number {
  const extra = event?.extra
  const isCounted = typeof extra === 'object' && extra !== null && 'accepted' in extra
  return isCounted ? Number(extra.accepted) : 0
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      url: { type: 'string', multiple: true, default: ['http://127.0.0.1:4700'] },
      guests: { type: 'string', default: '1000' },
    },
  })
  const client = await connect({ endpoints: values.url })
  const db = await openCalendars(client)
  if (positionals[0] === 'handle') {
    handleAll(db, (error) => process.stderr.write(`${String(error)}\n`))
    process.stdout.write('handling\n')
    return
  }
  const organiser = randomUUID()
  const guests = Array.from({ length: Number(values.guests) }, () => randomUUID())
  const before = performance.now()
  const event = await invite(db, organiser, guests)
  for (let accepted = 0; accepted < guests.length;) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    accepted = await countAccepted(db, organiser, event)
    process.stdout.write(`${accepted} of ${guests.length} have it\n`)
  }
  process.stdout.write(`after ${Math.round(performance.now() - before)} ms\n`)
  await client.close()
}

if (process.argv[1]?.includes('invitations') === true && process.env['VITEST'] === undefined) {
  await main()
}
