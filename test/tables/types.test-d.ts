/** Types of the handles: tsc alone runs this file. Code that must not compile is in refused/. */
import { expectTypeOf } from 'vitest'
import { Calendar, Event, type calendars, type Comment } from '../../schema/examples/calendar.ts'
import { Photo, type photoApp } from '../../schema/examples/photos.ts'
import type { Insert, Row } from '../../schema/infer.ts'
import type { GroupReader, GroupTransaction, Put } from '../../src/tables/types.ts'

declare const tx: GroupTransaction<typeof photoApp.tables>
declare const reader: GroupReader<typeof calendars.tables>

expectTypeOf(tx.get(Photo, { user_id: 1n, photo_id: 1 })).toEqualTypeOf<
  Promise<Row<typeof Photo> | undefined>
>()
expectTypeOf<Put<typeof Comment>>().toHaveProperty('number')
expectTypeOf<Insert<typeof Comment>>().not.toHaveProperty('number')

export async function tree(): Promise<string> {
  const [found] = (
    await reader.scanTree(Event, { calendar_id: 'a-b-c-d-e', start: 1, event_id: 'a-b-c-d-e' })
  ).items
  if (found?.table === 'Comment') {
    expectTypeOf(found.row).toEqualTypeOf<Row<typeof Comment>>()
    return found.row.text
  }
  expectTypeOf(found?.table).toEqualTypeOf<
    'Account' | 'Calendar' | 'Event' | 'Reminder' | undefined
  >()
  return ''
}

export async function inline(): Promise<readonly string[]> {
  const row = await reader.getWith(Calendar, { calendar_id: 'a-b-c-d-e' }, Event, 'TitlesByTag')
  return (row?.TitlesByTag ?? []).map(({ tag, title }) => `${row?.title} ${tag} ${title}`)
}
