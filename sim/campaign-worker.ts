/** One process of a campaign: runs the seeds it is sent, one after another, until told no more. */
import { runSeedChecked } from './run.ts'

interface Order {
  readonly seed: number
  readonly check: boolean
  readonly rules?: readonly string[]
}

process.on('message', ({ seed, check, rules }: Order) => {
  void runSeedChecked(seed, check, { rules }).then((result) => process.send?.(result))
})
