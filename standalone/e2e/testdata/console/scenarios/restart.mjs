// The API's process dies under an open page, and another page is asked for. What was shown
// stays, a line says that the service is away, and the other page comes with the service.
import {ask} from '../browser.mjs'

export default async ({come, key}) => {
	const v = await come()
	v.expected.push(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|503/)
	await v.signIn(key)
	await v.press('link', 'Tasks')
	await v.holds(() => location.pathname === '/console/tasks')
	await v.page.waitForSelector('a[href*="/console/tasks/task_"]')
	await v.settles()
	await ask('kill')
	await v.press('link', 'Usage') // which was not loaded yet
	await v.sees('cannot be reached')
	await v.sees('alpha-v3')
	await ask('start')
	await v.holds(() => !document.body.innerText.includes('cannot be reached'))
	await v.holds(() => location.pathname === '/console/usage')
	await v.at('heading', 'Usage')
	await v.leave()
}
