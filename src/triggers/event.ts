/** The reports of a worker about itself, for any listener: a log, a line of progress, a checker. */
import type { Cell } from '../cells/cell.ts'
import type { TriggerCell } from './definition.ts'
import type { Claim } from './offset-store.ts'

export type TriggerEvent =
  | {
      readonly kind: 'calls'
      readonly trigger: string
      readonly cell: TriggerCell
      readonly claim: Claim
    }
  | (CallEnded & { readonly kind: 'handled' })
  | (CallEnded & { readonly kind: 'failed'; readonly error: string })
  | {
      readonly kind: 'marked'
      readonly trigger: string
      readonly shard: number
      readonly cell: Cell
      readonly attempts: number
      readonly error: string
    }
  | {
      readonly kind: 'unmarked'
      readonly trigger: string
      readonly shard: number
      readonly addedId: number
    }
  /** Cells of the shard, of any column, that were gone before this worker read the log: expired, or purged. */
  | {
      readonly kind: 'passed-over'
      readonly trigger: string
      readonly shard: number
      readonly cells: number
    }
  | {
      readonly kind: 'saved'
      readonly trigger: string
      readonly claim: Claim
      readonly after: number
    }
  | { readonly kind: 'elected'; readonly term: number }
  | { readonly kind: 'assigned'; readonly generation: number; readonly shards: number }
  | {
      readonly kind: 'state'
      readonly trigger: string
      readonly state: string
      readonly reason: string
    }
  /** The service's group cannot be reached, or can be again: shards are worked on all the same. */
  | { readonly kind: 'reach'; readonly isReached: boolean; readonly error: string }

interface CallEnded {
  readonly trigger: string
  readonly cell: TriggerCell
  readonly claim: Claim
  readonly attempt: number
}
