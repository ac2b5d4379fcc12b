/**
 * A sender of messages: a program on the real client library. Its transactions send some messages
 * each, to its own group and others, at once and delayed. A row of the transaction lists the
 * messages.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId } from '../../src/base/ids.ts'
import type { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { Sender } from '../../src/queues/send.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { sentMark, type QueueChecker, type SentMessage } from '../checkers/queue-checker.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'

export interface QueueSessionParts {
  readonly name: string
  readonly world: World
  readonly random: SeededRandom
  readonly client: Client
  readonly clock: Clock
  readonly checker: QueueChecker
  readonly coverage: Coverage
  readonly groups: readonly GroupId[]
  readonly operations: number
  readonly thinkMeanMicros: number
  readonly timeoutMs: number
  /** Whether some messages cannot be handled, at first or at all. */
  readonly hasPoison: boolean
}

export const queueNames = ['red', 'blue'] as const
const counts = [1, 1, 2, 3, 8] as const
const delays = [0, 0, 0, 0, 40, 1_500] as const

export class QueueSession {
  readonly #parts: QueueSessionParts
  readonly #intents: Sessions
  #isEnding = false

  constructor(parts: QueueSessionParts) {
    this.#parts = parts
    this.#intents = new Sessions(parts.clock, parts.random.fork('intents'))
  }

  end(): void {
    this.#isEnding = true
  }

  async run(): Promise<void> {
    const { operations, world, random, thinkMeanMicros } = this.#parts
    for (let i = 1; i <= operations && !this.#isEnding; i++) {
      await world.sleep(1 + random.exponential(thinkMeanMicros))
      await this.#send(i)
    }
  }

  async #send(number: number): Promise<void> {
    const { name, random, client, clock, checker, groups, timeoutMs, coverage } = this.#parts
    const group = random.pick(groups)
    const operation = `${name}.${number}`
    const drawn = this.#draw()
    const isBlind = random.chance(300_000)
    let run = 0
    try {
      const options = { clock, random, intents: this.#intents, timeoutMs }
      await runTransaction(client.groups, group, options, async (transaction) => {
        run += 1
        const own = run
        const messages = drawn.map((one, index) => nameMessage(one, operation, own, index))
        if (!isBlind) await transaction.get(Buffer.from('hot'))
        if (!isBlind) transaction.put(Buffer.from('hot'), Buffer.from(operation))
        transaction.put(Buffer.from(`${sentMark}${operation}`), Buffer.from(String(own)))
        const sender = new Sender(transaction)
        for (const { queue, to, name: body, delayMs } of messages) {
          sender.send(queue, to, Buffer.from(body), { delayMs })
        }
        checker.onRun(operation, own, messages)
      })
      coverage.count('queues: committed')
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      coverage.count(`queues: refused ${error.code}`)
    }
  }

  #draw(): readonly Drawn[] {
    const { random, groups, hasPoison } = this.#parts
    return Array.from({ length: random.pick(counts) }, () => {
      const to = random.pick(groups)
      const drawn = random.int(1, 30)
      const kind = !hasPoison || drawn > 3 ? 'plain' : drawn === 1 ? 'poison' : 'shaky'
      return {
        to,
        receiver: to,
        queue: random.pick(queueNames),
        delayMs: random.pick(delays),
        kind,
      }
    })
  }
}

interface Drawn extends Omit<SentMessage, 'name'> {
  readonly to: GroupId
  readonly kind: 'plain' | 'poison' | 'shaky'
}

function nameMessage(
  drawn: Drawn,
  operation: string,
  run: number,
  index: number,
): Drawn & SentMessage {
  return { ...drawn, name: `m:${operation}.${run}/${index}:${drawn.kind}` }
}
