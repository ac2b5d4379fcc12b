/**
 * A port to groups of which some cannot be reached, as from a process that is cut off from those.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId } from '../../src/base/ids.ts'
import type { GroupPort } from '../../src/group/group-port.ts'

/** Transactions on a group for which `isCut` holds fail before they read or write. */
export function guardedPort(groups: GroupPort, isCut: (group: GroupId) => boolean): GroupPort {
  const check = (group: GroupId): void => {
    if (isCut(group)) throw new StoreError('unavailable', 'the group cannot be reached')
  }
  return {
    view: async (group, ...rest) => {
      check(group)
      return groups.view(group, ...rest)
    },
    get: (...given) => groups.get(...given),
    scan: (...given) => groups.scan(...given),
    commit: async (submission, timeoutMs) => {
      check(submission.group)
      return groups.commit(submission, timeoutMs)
    },
  }
}
