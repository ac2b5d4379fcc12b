/**
 * The code that compiles, and its types: tsc alone runs this file. Code that must not compile is in refused/.
 */
import { expectTypeOf } from 'vitest'
import type { Calendar, Comment, Event, calendars } from '../../schema/examples/calendar.ts'
import type { Photo, User } from '../../schema/examples/photos.ts'
import type {
  IndexEntry,
  IndexNames,
  IndexQuery,
  Insert,
  Key,
  KeyPrefix,
  KeyRange,
  Patch,
  Range,
  ReadKey,
  Row,
} from '../../schema/infer.ts'
import { t } from '../../schema/property.ts'
import { desc, table } from '../../schema/table.ts'
import type { JsonValue, Uuid } from '../../schema/values.ts'

// Rows: required, optional, repeated.
expectTypeOf<Row<typeof User>>().toEqualTypeOf<{
  readonly user_id: bigint
  readonly name: string
}>()
expectTypeOf<Row<typeof Photo>>().toEqualTypeOf<{
  readonly user_id: bigint
  readonly photo_id: number
  readonly time: bigint
  readonly full_url: string
  readonly thumbnail_url?: string
  readonly tag: readonly string[]
}>()

// Messages inside rows, one and many; a default makes no difference to who reads.
expectTypeOf<Row<typeof Event>>().toEqualTypeOf<{
  readonly calendar_id: Uuid
  readonly start: number
  readonly event_id: Uuid
  readonly title: string
  readonly minutes: number
  readonly place?: {
    readonly name: string
    readonly latitude?: number
    readonly longitude?: number
    readonly geohash: readonly string[]
  }
  readonly guest: readonly { readonly account_id: bigint; readonly state: string }[]
  readonly tag: readonly string[]
  readonly extra?: JsonValue
}>()

// Inserts: lists and what has a default may be left out, a sequence must be.
expectTypeOf<Insert<typeof Event>>().toEqualTypeOf<{
  readonly calendar_id: Uuid
  readonly start: number | bigint | Date
  readonly event_id: Uuid
  readonly title: string
  readonly minutes?: number
  readonly place?: {
    readonly name: string
    readonly latitude?: number
    readonly longitude?: number
    readonly geohash?: readonly string[]
  }
  readonly guest?: readonly { readonly account_id: bigint; readonly state?: string }[]
  readonly tag?: readonly string[]
  readonly extra?: JsonValue
}>()
expectTypeOf<Insert<typeof Comment>>().toEqualTypeOf<{
  readonly calendar_id: Uuid
  readonly start: number | bigint | Date
  readonly event_id: Uuid
  readonly author: bigint
  readonly text: string
}>()

// Patches: never the key; null takes an optional property away.
expectTypeOf<Patch<typeof Photo>>().toEqualTypeOf<{
  readonly time?: bigint
  readonly full_url?: string
  readonly thumbnail_url?: string | null
  readonly tag?: readonly string[]
}>()

// Keys, their prefixes and ranges. A moment is given as a Date too, and read as microseconds.
expectTypeOf<Key<typeof Photo>>().toEqualTypeOf<{
  readonly user_id: bigint
  readonly photo_id: number
}>()
expectTypeOf<Key<typeof Comment>>().toEqualTypeOf<{
  readonly calendar_id: Uuid
  readonly start: number | bigint | Date
  readonly event_id: Uuid
  readonly number: number
}>()
expectTypeOf<ReadKey<typeof Comment>['start']>().toEqualTypeOf<number>()
expectTypeOf<Row<typeof Comment>['start']>().toEqualTypeOf<number>()
expectTypeOf({}).toExtend<KeyPrefix<typeof Photo>>()
expectTypeOf({ user_id: 1n }).toExtend<KeyPrefix<typeof Photo>>()
expectTypeOf({ user_id: 1n, photo_id: 2 }).toExtend<KeyPrefix<typeof Photo>>()
expectTypeOf({ photo_id: 2 }).not.toExtend<KeyPrefix<typeof Photo>>()
expectTypeOf({ user_id: { gte: 1n, lt: 9n } }).toExtend<KeyRange<typeof Photo>>()
expectTypeOf({ user_id: 1n, photo_id: { gt: 2 } }).toExtend<KeyRange<typeof Photo>>()
expectTypeOf({ user_id: { gte: 1n }, photo_id: 2 }).not.toExtend<KeyRange<typeof Photo>>()
expectTypeOf({ gte: 1, gt: 1 }).not.toExtend<Range<number>>()

// Index queries name its parts from the first one on; one element stands for a list.
expectTypeOf<IndexNames<typeof Photo>>().toEqualTypeOf<'PhotosByTime' | 'PhotosByTag'>()
expectTypeOf<IndexNames<typeof Calendar>>().toEqualTypeOf<'CalendarsByOwner'>()
expectTypeOf({ user_id: 1n, time: { gte: 4n } }).toExtend<
  IndexQuery<typeof Photo, 'PhotosByTime'>
>()
expectTypeOf({ time: 4n }).not.toExtend<IndexQuery<typeof Photo, 'PhotosByTime'>>()
expectTypeOf({ tag: 'sea' }).toExtend<IndexQuery<typeof Photo, 'PhotosByTag'>>()
expectTypeOf({ 'guest.account_id': 7n, start: { lt: 0 } }).toExtend<
  IndexQuery<typeof Event, 'EventsByGuest'>
>()

// Entries: the indexed values, the key, the stored properties (absent where they may be).
expectTypeOf<IndexEntry<typeof Photo, 'PhotosByTag'>>().toEqualTypeOf<{
  readonly tag: string
  readonly user_id: bigint
  readonly photo_id: number
  readonly thumbnail_url?: string
}>()
expectTypeOf<IndexEntry<typeof Event, 'EventsByPlace'>>().toEqualTypeOf<{
  readonly calendar_id: Uuid
  readonly start: number
  readonly event_id: Uuid
  readonly 'place.name': string
  readonly 'place.latitude'?: number
}>()

// A schema knows its tables.
expectTypeOf<(typeof calendars)['tables'][2]>().toEqualTypeOf<typeof Event>()
expectTypeOf<(typeof calendars)['tables'][2]['name']>().toEqualTypeOf<'Event'>()

// Every type has its values.
const Every = table('Every', {
  string: t.string(),
  bytes: t.bytes(),
  bool: t.bool(),
  int32: t.int32(),
  int64: t.int64(),
  integer: t.integer(),
  float: t.float(),
  double: t.double(),
  timestamp: t.timestamp(),
  uuid: t.uuid(),
  json: t.json(),
  trip: t.json<{ readonly from: string; readonly stops: readonly number[] }>(),
})
  .key('string', 'bytes', 'bool', desc('int32'), 'int64', 'integer', 'timestamp', 'uuid')
  .root()
expectTypeOf<Row<typeof Every>>().toEqualTypeOf<{
  readonly string: string
  readonly bytes: Uint8Array
  readonly bool: boolean
  readonly int32: number
  readonly int64: bigint
  readonly integer: number
  readonly float: number
  readonly double: number
  readonly timestamp: number
  readonly uuid: Uuid
  readonly json: JsonValue
  readonly trip: { readonly from: string; readonly stops: readonly number[] }
}>()

// A number that a sequence gave is an integer in what lies below.
declare const above: typeof Comment
const Reply = table('Reply', {
  calendar_id: t.uuid(),
  start: t.timestamp(),
  event_id: t.uuid(),
  comment: t.integer(),
  text: t.string(),
})
  .key('calendar_id', desc('start'), 'event_id', 'comment')
  .in(above)
expectTypeOf<Key<typeof Reply>['comment']>().toEqualTypeOf<number>()
