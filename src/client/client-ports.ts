/** The ports that a client stands on. */
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Transport } from '../ports/transport.ts'
import type { TransactionScope } from '../txn/scope.ts'
import type { ClientFrame } from '../wire/client/client-message.ts'

export interface ClientPorts {
  readonly transport: Transport<ClientFrame>
  readonly clock: Clock
  readonly random: Random
  /** Tells code inside the function of a transaction from other code; without it, it is not told. */
  readonly scope?: TransactionScope
}
