/** Planted bugs in reads of bounded staleness: what counts as fresh, and from when. */
import type { Edit, Mutant } from './mutant.ts'

/** A part of the runs has such reads: all of the mutant's seeds do. */
const everyRunReads: Edit = {
  file: 'sim/workloads/bounded-draw.ts',
  find: 'random.pick([0, 0, 0, 1, 2])',
  replace: '3 + random.pick([0, 1])',
}

const rules = ['STALE-1']
const ofFreshness = 'src/peers/freshness.ts'

export const freshnessMutants: readonly Mutant[] = [
  {
    id: 'STALE1',
    title: 'freshness: a round counts from when its answer came',
    rules,
    edits: [
      everyRunReads,
      {
        file: ofFreshness,
        find: '    if (!marks.rounds.answer(asked, through))',
        replace:
          '    marks.rounds.ask(asked, this.#reading())\n    if (!marks.rounds.answer(asked, through))',
      },
    ],
  },
  {
    id: 'STALE2',
    title: 'freshness: a round is over whatever was named',
    rules,
    edits: [
      everyRunReads,
      {
        file: ofFreshness,
        find: 'marks.rounds.end(marks.knownThrough)',
        replace: 'marks.rounds.end(Infinity)',
      },
      {
        file: ofFreshness,
        find: 'if (marks.knownThrough >= through) this',
        replace: 'if (marks.knownThrough >= 0) this',
      },
    ],
  },
  {
    id: 'STALE3',
    title: 'freshness: a group counts though something that was named of it is missing',
    rules,
    edits: [
      everyRunReads,
      {
        file: 'src/peers/peer-rounds.ts',
        find: 'if ((named.get(group) ?? 0) > position) return fresh',
        replace: 'if ((named.get(group) ?? 0) < 0) return fresh',
      },
      {
        file: 'src/peers/peer-rounds.ts',
        find: 'if ((this.#before.get(group) ?? 0) > position) return undefined',
        replace: 'if ((this.#before.get(group) ?? 0) < 0) return undefined',
      },
    ],
  },
  {
    id: 'STALE4',
    title: 'freshness: the age of a round is not looked at',
    rules,
    edits: [
      everyRunReads,
      {
        file: ofFreshness,
        find: 'this.#ageMs(at, now) <= maxStalenessMs',
        replace: 'this.#ageMs(at, now) <= maxStalenessMs + 1e9',
      },
    ],
  },
]
