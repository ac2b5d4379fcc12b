/** Tables, keys, queues and functions as programs give them; each throws `invalid` for what is none. */
import { callback, checkArgument, wrongArgument } from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { hiddenIn, isReadable } from '../base/readable.ts'
import { unknownWord } from '../base/suggest.ts'
import type { RootKey } from './call-options.ts'

export function checkRun(call: string, run: unknown): void {
  checkArgument(call, 'what is to be run', run, callback)
}

/** The name of a table, as `table(…)` gives it. Throws `invalid` for what is none. */
export function tableName(call: string, table: unknown): string {
  const isObject = typeof table === 'object' && table !== null && isReadable(table)
  if (isObject && 'name' in table && typeof table.name === 'string') return table.name
  throw wrongArgument(call, 'the table', table, 'a table, as table(…) gives it')
}

/** The table and the key that name a group. Throws `invalid` for what is no such pair. */
export function checkRootKey(key: unknown): RootKey {
  const words = 'a table and its key: rootKey(User, { user_id: 1n })'
  if (typeof key !== 'object' || key === null || !isReadable(key) || Array.isArray(key)) {
    throw wrongArgument('the group', 'its root', key, words)
  }
  for (const name in key) {
    if (name === 'table' || name === 'key') continue
    const message = `the group: ${unknownWord('property', name, ['table', 'key'])}`
    throw new StoreError('invalid', message)
  }
  const hidden = hiddenIn(key)
  if (hidden !== undefined) throw new StoreError('invalid', `the group: its root has ${hidden}`)
  const table: unknown = 'table' in key ? key.table : undefined
  if (typeof table !== 'string') throw wrongArgument('the group', 'its table', table, words)
  return { table, key: 'key' in key ? key.key : undefined }
}

/** The name of a queue, as `queue(…)` gives it. Throws `invalid` for what is none. */
export function nameOfQueue(call: string, queue: unknown): string {
  const isObject = typeof queue === 'object' && queue !== null && isReadable(queue)
  if (isObject && 'name' in queue && 'to' in queue && typeof queue.name === 'string') {
    return queue.name
  }
  throw wrongArgument(call, 'the queue', queue, 'a queue, as queue<Body>()(name, Root) gives it')
}
