/** One process of a campaign: runs the seeds it is sent, one after another, until told no more. */
import { runSeedChecked } from './run.ts'
import type { Switches } from './faults/swarm-faults.ts'

interface Order {
  readonly seed: number
  readonly check: boolean
  readonly rules?: readonly string[]
  readonly switches?: Switches
}

process.on('message', ({ seed, check, rules, switches }: Order) => {
  void runSeedChecked(seed, check, { rules }, switches).then((result) => process.send?.(result))
})

// The campaign that would get the results has ended, by itself or not.
process.on('disconnect', () => process.exit())
