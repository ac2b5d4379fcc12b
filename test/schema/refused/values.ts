/** Values that must not compile. `// error:` says which words tsc has for the line below it. */
import type { Comment, Event } from '../../../schema/examples/calendar.ts'
import type { Photo, User } from '../../../schema/examples/photos.ts'
import type { IndexQuery, Insert, Key, KeyPrefix, KeyRange, Patch } from '../../../schema/infer.ts'

type ByTime = IndexQuery<typeof Photo, 'PhotosByTime'>

// error: 'nam' does not exist in type
export const a1: Insert<typeof User> = { user_id: 1n, nam: 'Ann' }
// error: Property 'name' is missing in type
export const a2: Insert<typeof User> = { user_id: 1n }
// error: Type 'number' is not assignable to type 'bigint'
export const a3: Insert<typeof User> = { user_id: 1, name: 'Ann' }
type NewComment = Insert<typeof Comment>
declare const comment: NewComment
// error: 'number' does not exist in type
export const a4: NewComment = { ...comment, number: 1 }
// error: Type 'undefined' is not assignable to type 'string'.
export const a5: Partial<Insert<typeof Photo>> = { thumbnail_url: undefined }
// error: 'stat' does not exist in type
export const a6: Partial<Insert<typeof Event>> = { guest: [{ account_id: 1n, stat: 'asked' }] }

// error: 'user_id' does not exist in type
export const b1: Patch<typeof Photo> = { user_id: 2n }
// error: Type 'null' is not assignable to type 'string'
export const b2: Patch<typeof Photo> = { full_url: null }
// error: 'number' does not exist in type
export const b3: Patch<typeof Comment> = { number: 2 }

// error: Property 'photo_id' is missing in type
export const c1: Key<typeof Photo> = { user_id: 1n }
// error: Property 'user_id' is missing in type
export const c2: KeyPrefix<typeof Photo> = { photo_id: 1 }
// error: Type '{ gte: bigint; }' is not assignable to type 'bigint'
export const c3: KeyRange<typeof Photo> = { user_id: { gte: 1n }, photo_id: 4 }

// error: Property 'user_id' is missing in type
export const d1: ByTime = { time: { gte: 4n } }
// error: 'tag' does not exist in type
export const d2: ByTime = { user_id: 1n, tag: 'sea' }
// error: Type '"PhotosByTim"' does not satisfy the constraint 'IndexNames<
export type D3 = IndexQuery<typeof Photo, 'PhotosByTim'>
// error: Type 'bigint' is not assignable to type 'undefined'
export const d4: KeyRange<typeof User> = { user_id: { gte: 1n, gt: 1n } }
