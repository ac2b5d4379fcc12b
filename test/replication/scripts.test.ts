/**
 * Golden scripts: stories of the protocol, line by line, as the core tells them. A change of what nodes
 * send, keep or show is seen here as a change of a file. `npx vitest run -c test/vitest.config.ts
 * test/replication/scripts.test.ts --update` writes the files anew; each is then to be read.
 */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { leaseStories } from './lease-stories.ts'
import { logStories, type Story } from './stories.ts'

const folder = fileURLToPath(new URL('../scripts', import.meta.url))
const stories = [...logStories, ...leaseStories]

function scriptOf({ title, look, tell }: Story): string {
  return `${[title, '', ...look].map((line) => `# ${line}`.trimEnd()).join('\n')}\n${tell().text}`
}

test('each story has its script, and each script its story', () => {
  const names = stories.map(({ name }) => `${name}.txt`)
  expect(readdirSync(folder).toSorted()).toEqual(names.toSorted())
})

test.each(stories)('$title', async (story) => {
  await expect(scriptOf(story)).toMatchFileSnapshot(join(folder, `${story.name}.txt`))
})
