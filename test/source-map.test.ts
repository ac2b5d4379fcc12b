/** The picture of the folders in src/README.md is the table of arrows, without those that others imply. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { arrows, dataWing, protocolWing } from './arrows.ts'

const page = readFileSync(fileURLToPath(new URL('../src/README.md', import.meta.url)), 'utf8')

/** Of other places, or no part of either wing: not in the picture. */
const leftOut = new Set(['schema', 'src', 'docs', 'sim', 'bench', 'test'])

function importsOf(folder: string): readonly string[] {
  return (arrows[folder] ?? []).filter((target) => !leftOut.has(target))
}

function reachedFrom(folder: string): ReadonlySet<string> {
  const reached = new Set<string>()
  const visit = (from: string): void => {
    for (const target of importsOf(from)) {
      if (reached.has(target)) continue
      reached.add(target)
      visit(target)
    }
  }
  visit(folder)
  return reached
}

/** Arrows that no longer way implies. */
function plainArrows(): readonly string[] {
  return Object.keys(arrows)
    .filter((folder) => !leftOut.has(folder))
    .flatMap((from) =>
      importsOf(from)
        .filter((to) => !importsOf(from).some((way) => way !== to && reachedFrom(way).has(to)))
        .map((to) => `${from} --> ${to}`),
    )
}

/** Folders under each heading of the picture. */
function drawnFolders(): ReadonlyMap<string, readonly string[]> {
  const blocks = page.matchAll(/subgraph \w+\["([^"]+)"\]\n([^]*?)\n {2}end/g)
  return new Map(
    [...blocks].map(([, title = '', body = '']) => [
      title,
      [...body.matchAll(/\["([\w/]+)"\]/g)].map((match) => match[1] ?? ''),
    ]),
  )
}

test('the picture has every folder once, and the wings as the table has them', () => {
  const drawn = drawnFolders()
  const folders = Object.keys(arrows).filter((folder) => !leftOut.has(folder))
  expect([...drawn.values()].flat().toSorted()).toEqual(folders.toSorted())
  expect(drawn.get('Wing of the protocol')).toEqual(protocolWing)
  expect(drawn.get('Wing of the data')).toEqual(dataWing)
})

test('the picture has exactly the arrows that no longer way implies', () => {
  const drawn = [...page.matchAll(/^ {2}(\w+) --> (\w+)$/gm)].map(([, from = '', to = '']) =>
    [from, to].map((name) => name.replace('_', '/')).join(' --> '),
  )
  expect(drawn.toSorted()).toEqual(plainArrows().toSorted())
})
