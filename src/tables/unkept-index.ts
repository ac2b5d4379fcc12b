/** An index that a schema may declare, and no store keeps yet. */
import type { Index, Schema } from '../../schema/model.ts'
import { StoreError } from '../base/errors.ts'

/** The reason why no cluster takes this sound schema; undefined where one may. */
export function unkeptIndex(schema: Schema): StoreError | undefined {
  const unique = schema.indexes.find((index) => index.kind === 'global' && index.unique)
  return unique && notKept(unique)
}

function notKept({ name, table }: Index): StoreError {
  const message = `index ${name} on ${table} is unique and global, which needs transactions over several groups; they are not there yet: make it LOCAL, or leave UNIQUE out`
  return new StoreError('invalid', message)
}
