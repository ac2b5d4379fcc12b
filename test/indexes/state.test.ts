/** The life of an index: which state follows which, and what a query of it is told. */
import { expect, test } from 'vitest'
import {
  checkMove,
  isAsked,
  nextStates,
  notAsked,
  type IndexState,
} from '../../src/indexes/state.ts'

const indexStates: readonly IndexState[] = ['declared', 'known', 'building', 'ready', 'dropping']

test('IDX-12: an index goes through its states in order, and can be dropped in any of them', () => {
  const moves = indexStates.flatMap((from) => nextStates[from].map((to) => `${from} ${to}`))
  expect(moves).toEqual([
    'declared known',
    'declared dropping',
    'known building',
    'known dropping',
    'building ready',
    'building dropping',
    'ready dropping',
  ])
  expect(() => checkMove('known', 'building')).not.toThrow()
  expect(() => checkMove('known', 'ready')).toThrow('IDX-12')
  expect(() => checkMove('dropping', 'ready')).toThrow('IDX-12')
})

test('IDX-12: only a ready index answers queries, and a refusal names the state and the command', () => {
  expect(indexStates.filter(isAsked)).toEqual(['ready'])
  const place = { name: 'ByCity', flags: '--schema Fleet' }
  for (const state of ['declared', 'known', 'building'] as const) {
    const refused = notAsked(place, state)
    expect(refused).toMatchObject({ code: 'unavailable', detail: { index: state } })
    expect(refused.message).toContain('trilithon index build --schema Fleet ByCity')
  }
  expect(notAsked(place, 'known').message).toContain('known to writers')
  const dropped = notAsked(place, 'dropping')
  expect(dropped).toMatchObject({ code: 'not-found', detail: { index: 'dropping' } })
})
