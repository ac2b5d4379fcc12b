/** The error of a replica whose group has left its set (`moved-row.ts`): its node asks the set in which the log goes on. */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'

export function movedError(group: GroupId, set: string): StoreError {
  return new StoreError('unavailable', `the group has moved to replica set ${set}; try again`, {
    group,
  })
}
