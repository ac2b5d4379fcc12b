/** Uses that must not compile. `// error:` says which words tsc has for the line below it. */
import { Comment, Event } from '../../../schema/examples/calendar.ts'
import { Photo, User, type photoApp } from '../../../schema/examples/photos.ts'
import { rootKey } from '../../../src/tables/tables.ts'
import { queue } from '../../../src/tables/queue-types.ts'
import type { GroupReader, GroupTransaction } from '../../../src/tables/types.ts'

declare const tx: GroupTransaction<typeof photoApp.tables>
declare const reader: GroupReader<typeof photoApp.tables>
const likes = queue<{ readonly by: string }>()('likes', User)
declare const comment: { calendar_id: 'a-b-c-d-e'; start: 1; event_id: 'a-b-c-d-e' }

// error: Property 'photo_id' is missing in type
export const a1 = tx.get(Photo, { user_id: 1n })
// error: Type 'number' is not assignable to type 'bigint'
export const a2 = tx.get(User, { user_id: 1 })
// error: 'phot_id' does not exist in type
export const a3 = tx.scan(Photo, { user_id: 1n, phot_id: 1 })
// error: 'full_url' does not exist in type
export const a4 = tx.index(Photo, 'PhotosByTime', { user_id: 1n, full_url: '' })
// error: '"PhotosByTim"' is not assignable to parameter of type
export const a5 = tx.index(Photo, 'PhotosByTim', { user_id: 1n })
// error: 'number' does not exist in type
export const b1 = tx.insert(Comment, { ...comment, author: 1n, text: '', number: 1 })
// error: Property 'number' is missing in type
export const b2 = tx.put(Comment, { ...comment, author: 1n, text: '' })
// error: 'photo_id' does not exist in type
export const b3 = tx.update(Photo, { user_id: 1n, photo_id: 1 }, { photo_id: 2 })
// error: Property 'insert' does not exist on type
export const c1 = reader.insert(User, { user_id: 1n, name: '' })
// error: is not assignable to
export const c2 = rootKey(Photo, { user_id: 1n, photo_id: 1 })
// error: is not assignable to
export const c3 = rootKey(Event, {})
// error: Property 'by' is missing in type
export const d1 = tx.send(likes, { user_id: 1n }, {})
// error: Type 'number' is not assignable to type 'bigint'
export const d2 = tx.send(likes, { user_id: 1 }, { by: 'ann' })
// error: is not assignable to
export const d3 = queue<string>()('likes', Photo)
