/** Planted bugs in when a node that has just started goes by the clocks of others. */
import type { Mutant } from './mutant.ts'

const waited =
  '    return this.#highest === Number.POSITIVE_INFINITY && nowMs < this.#waitUntilMs\n'

export const clockMutants: readonly Mutant[] = [
  {
    id: 'CLK1',
    title: 'a node is ready at once, whoever has told it its clocks',
    rules: ['CLOCK-3'],
    edits: [
      {
        file: 'src/peers/peer-clocks.ts',
        find: waited,
        replace: waited.replace('waitUntilMs', 'waitUntilMs - clockWaitMs'),
      },
    ],
  },
  {
    id: 'CLK2',
    title: 'a node is ready once a single other one has told it its clock',
    rules: ['CLOCK-3'],
    edits: [
      {
        file: 'src/peers/peer-clocks.ts',
        find: waited,
        replace: '    return this.#heard.size === 0 && nowMs < this.#waitUntilMs\n',
      },
    ],
  },
]
