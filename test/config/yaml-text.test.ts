/** Text of YAML that is nested without end. */
import { expect, test } from 'vitest'
import { readYaml } from '../../src/config/yaml-text.ts'

function said(text: string): readonly string[] {
  const read = readYaml(text)
  return read.ok ? [] : read.mistakes.map((one) => one.text)
}

test.each([65, 1_000, 10_000])(
  'lists and maps that are %s deep are refused by a limit',
  (depth) => {
    const words = ['lists and maps are nested deeper than 64 levels']
    expect(said(`a: ${'['.repeat(depth)}${']'.repeat(depth)}`)).toEqual(words)
    expect(said(`${'- '.repeat(depth)}a`)).toEqual(words)
    expect(said(`${'{a: '.repeat(depth)}1${'}'.repeat(depth)}`)).toEqual(words)
  },
)

test('lists and maps that are 64 deep are taken', () => {
  expect(said(`${'['.repeat(64)}${']'.repeat(64)}`)).toEqual([])
})
