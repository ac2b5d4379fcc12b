/** One process of a campaign: runs the seeds it is sent, one after another, until told no more. */
import { runSeedChecked } from './run.ts'

interface Order {
  readonly seed: number
  readonly check: boolean
}

process.on('message', (order: Order) => {
  void runSeedChecked(order.seed, order.check).then((result) => process.send?.(result))
})
