/** Tables, keys, queues and functions as programs give them; each throws `invalid` for what is none. */
import {
  callback,
  checkArgument,
  givenMember,
  givenMembers,
  wrongArgument,
} from '../base/arguments.ts'
import { isReadable } from '../base/readable.ts'
import type { RootKey } from './call-options.ts'

export function checkRun(call: string, run: unknown): void {
  checkArgument(call, 'what is to be run', run, callback)
}

/** The name of a table, as `table(…)` gives it. Throws `invalid` for what is none. */
export function tableName(call: string, table: unknown): string {
  const isObject = typeof table === 'object' && table !== null && isReadable(table)
  const name: unknown = isObject && givenMember(`${call}: the table`, table, 'name')
  if (typeof name === 'string') return name
  throw wrongArgument(call, 'the table', table, 'a table, as table(…) gives it')
}

/** The table and the key that name a group. Throws `invalid` for what is no such pair. */
export function checkRootKey(key: unknown): RootKey {
  const words = 'a table and its key: rootKey(User, { user_id: 1n })'
  const known = ['table', 'key']
  const { table, key: named } = givenMembers('the group', 'its root', key, { known, words })
  if (typeof table !== 'string') throw wrongArgument('the group', 'its table', table, words)
  return { table, key: named }
}

/** The name of a queue, as `queue(…)` gives it. Throws `invalid` for what is none. */
export function nameOfQueue(call: string, queue: unknown): string {
  const isObject = typeof queue === 'object' && queue !== null && isReadable(queue)
  const where = `${call}: the queue`
  const name: unknown = isObject && givenMember(where, queue, 'name')
  if (typeof name === 'string' && isObject && givenMember(where, queue, 'to') !== undefined) {
    return name
  }
  throw wrongArgument(call, 'the queue', queue, 'a queue, as queue<Body>()(name, Root) gives it')
}
