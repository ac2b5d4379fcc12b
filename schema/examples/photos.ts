/** The schema of the Megastore paper (figure 3): users, each with photos. As text: photos.ddl. */
import { defineSchema } from '../define.ts'
import { t } from '../property.ts'
import { table } from '../table.ts'

export const User = table('User', {
  user_id: t.int64(),
  name: t.string(),
})
  .key('user_id')
  .root()

export const Photo = table('Photo', {
  user_id: t.int64(),
  photo_id: t.int32(),
  time: t.int64(),
  full_url: t.string(),
  thumbnail_url: t.string().optional(),
  tag: t.string().repeated(),
})
  .key('user_id', 'photo_id')
  .in(User)
  .localIndex('PhotosByTime', ['user_id', 'time'])
  .globalIndex('PhotosByTag', ['tag'], { storing: ['thumbnail_url'] })

export const photoApp = defineSchema('PhotoApp', [User, Photo])
