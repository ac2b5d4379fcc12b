/**
 * Planted bugs that need a copy that comes long after, or a number that begins anew after a
 * restart.
 */
import type { Edit, Mutant } from './mutant.ts'

const numbersBeginAnew: Edit = {
  file: 'src/base/drawn-numbers.ts',
  find: '  return incarnation * drawnMax\n',
  replace: '  return 0 * incarnation * drawnMax\n',
}

export const copyMutants: readonly Mutant[] = [
  {
    id: 'K01',
    title: 'what a node draws numbers for is numbered from 1 again after a restart',
    edits: [numbersBeginAnew],
  },
  {
    id: 'K01-all',
    title: 'the same, in every order of few events',
    scopes: ['read-restarts'],
    edits: [numbersBeginAnew],
  },
  {
    id: 'K02',
    title: 'an answer that comes late brings an earlier term of a lease back',
    edits: [
      {
        file: 'src/lease/holder.ts',
        find: 'if (held === undefined || isOlder(message.term, held)) return false',
        replace:
          'if (held === undefined || (isOlder(message.term, held) && message.term.number < 0)) return false',
      },
    ],
  },
  {
    id: 'K03',
    title: 'a copy of a client’s request is carried out beside its original',
    edits: [
      {
        file: 'src/node/client-server.ts',
        find: '.seen.add(request.id) === true)',
        replace: '.seen.add(request.id) !== undefined)',
      },
    ],
  },
  {
    id: 'K06',
    title: 'of a client’s requests the last alone is remembered: an older copy is carried out',
    edits: [
      {
        file: 'src/node/seen-requests.ts',
        find: '    const place = id % requestsOutOfOrderMax\n    if (id <= (this.#highest[place] ?? 0)) return false\n',
        replace:
          '    const place = id > 0 ? 0 : requestsOutOfOrderMax\n    if (id === this.#highest[place]) return false\n',
      },
    ],
  },
]
