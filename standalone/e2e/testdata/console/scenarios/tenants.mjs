// Two tenants do not see each other, in one browser after the other has signed out, and
// in two at once.
import {must} from '../browser.mjs'

export default async ({come, key, other, base}) => {
	const made = await fetch(base + '/v1/images/generations', {
		method: 'POST', headers: {Authorization: `Bearer ${key}`}, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a heron', metadata: {reference: 'secret plan'}}),
	})
	const id = (await made.json()).data[0].task_id
	const v = await come()
	v.expected.push(/400/, /401/)
	await v.signIn(key)
	await v.go('/tasks')
	await v.sees('secret plan')
	await v.press('button', 'Sign out')
	await v.holds(() => location.pathname.endsWith('/sign-in'))

	await v.signIn(other)
	await v.go('/tasks')
	await v.sees('Tasks')
	await v.settles()
	await v.seesNot('secret plan')
	await v.go(`/tasks/${id}`)
	await v.settles()
	await v.seesNot('secret plan')
	// A tab in which the first is still shown notices that another has signed in.
	await v.go('/tasks')
	await v.sees('Tasks')
	const signInElsewhere = async () => {
		const tab = await v.context.newPage()
		await tab.goto(`${base}/console/account`, {waitUntil: 'networkidle0'})
		await tab.evaluate(async key => {
			await fetch('/console/session', {method: 'POST', body: JSON.stringify({key})})
		}, key)
		await tab.close()
	}
	await signInElsewhere()
	await v.page.bringToFront()
	await v.page.evaluate(() => dispatchEvent(new Event('visibilitychange')))
	await v.sees('secret plan')
	must(!(await v.page.evaluate(() => JSON.stringify([{...sessionStorage}, {...localStorage}]))).includes(id), 'the browser keeps tasks of who was here before')

	// An answer that comes late to the session before does not end the one after it.
	let late = true
	await v.page.setRequestInterception(true)
	v.page.on('request', request => {
		if (!late || new URL(request.url()).pathname !== '/v1/tasks') return request.continue()
		late = false
		return request.respond({status: 401, contentType: 'application/json', body: JSON.stringify({error: {message: 'the session has ended'}})})
	})
	await signInElsewhere()
	await v.page.bringToFront()
	await v.choose('Type', 'image')
	await v.holds(() => location.search.includes('type=image') && document.body.innerText.includes('secret plan'))
	must(!late, 'the list asked for nothing')

	// Who signs out in one tab is told so in the other.
	const second = await v.context.newPage()
	await second.goto(`${base}/console/tasks`)
	await second.waitForFunction(() => document.body.innerText.includes('secret plan'))
	await v.page.bringToFront()
	await v.press('button', 'Sign out')
	await v.holds(() => location.pathname === '/console/sign-in')
	await second.bringToFront()
	await second.evaluate(() => dispatchEvent(new Event('visibilitychange')))
	await second.waitForFunction(() => document.body.innerText.includes('Your session has ended'))
	await v.leave()
}
