/**
 * Shared calendars: everything that the language has, in one schema. Two kinds of groups, three
 * tables deep, messages, a sequence, defaults, every kind of index. As text: calendar.ddl.
 */
import { defineSchema } from '../define.ts'
import { t } from '../property.ts'
import { desc, table } from '../table.ts'

/** New accounts go everywhere, though their numbers rise. */
export const Account = table('Account', {
  account_id: t.int64(),
  email: t.string(),
  locale: t.string().default('en'),
  picture: t.bytes().optional(),
})
  .key('account_id')
  .root({ scatter: true })
  .globalIndex('AccountsByEmail', ['email'], { unique: true })

export const Calendar = table('Calendar', {
  calendar_id: t.uuid(),
  title: t.string(),
  owner: t.int64(),
  is_public: t.bool().default(false),
})
  .key('calendar_id')
  .root()
  .globalIndex('CalendarsByOwner', ['owner'], { storing: ['title'], shards: 64 })

export const Event = table('Event', {
  calendar_id: t.uuid(),
  start: t.timestamp(),
  event_id: t.uuid(),
  title: t.string(),
  minutes: t.int32().default(60),
  place: t
    .message({
      name: t.string(),
      latitude: t.double().optional(),
      longitude: t.double().optional(),
      geohash: t.string().repeated(),
    })
    .optional(),
  guest: t.message({ account_id: t.int64(), state: t.string().default('asked') }).repeated(),
  tag: t.string().repeated(),
  extra: t.json().optional(),
})
  .key('calendar_id', desc('start'), 'event_id')
  .in(Calendar)
  .localIndex('EventsByTag', ['calendar_id', 'tag', desc('start')], { storing: ['title'] })
  .localIndex('EventsByPlace', ['calendar_id', 'place.name'], {
    storing: ['place.latitude'],
    wherePresent: true,
  })
  .globalIndex('EventsByGuest', ['guest.account_id', desc('start')], {
    storing: ['title', 'minutes'],
    shards: 256,
    spread: 4,
  })
  .inlineIndex('TitlesByTag', Calendar, ['calendar_id', 'tag'], { storing: ['title'] })

/** Next to its event. */
export const Comment = table('Comment', {
  calendar_id: t.uuid(),
  start: t.timestamp(),
  event_id: t.uuid(),
  number: t.sequence(),
  author: t.int64(),
  text: t.string(),
})
  .key('calendar_id', desc('start'), 'event_id', 'number')
  .in(Event)

/** In the group of its calendar, in a range of its own. */
export const Reminder = table('Reminder', {
  calendar_id: t.uuid(),
  due: t.timestamp(),
  account_id: t.int64(),
  rate: t.float().default(1.5),
})
  .key('calendar_id', 'due', 'account_id')
  .childOf(Calendar)

export const calendars = defineSchema('Calendars', [Account, Calendar, Event, Comment, Reminder])
